// What a person chose and the server has not answered yet: it is shown instead of the server's value.

/**
 * @typedef {Readonly<Record<string, {id: string, value: number}>>} Choices by name: `recording`, or a
 *   parameter as the server's errors name it, such as `parameters.speed`
 * @typedef {{name: string, value: number}} Parameter
 */

export const RECORDING = "recording";

/** @type {Choices} */
export const NOTHING_CHOSEN = Object.freeze({});

/** @param {string} parameter */
export function parameterKey(parameter) {
  return `parameters.${parameter}`;
}

/**
 * The command `id` asks for a value.
 * @param {Choices} choices @param {{id: string, name: string, value: number}} choice @returns {Choices}
 */
export function chosen(choices, { id, name, value }) {
  return { ...choices, [name]: { id, value } };
}

/**
 * A command was answered. A newer choice of the same name stays.
 * @param {Choices} choices @param {string | null | undefined} id @returns {Choices} the same ones when none changes
 */
export function answered(choices, id) {
  const left = Object.entries(choices).filter(([, choice]) => choice.id !== id);
  return left.length === Object.keys(choices).length ? choices : Object.fromEntries(left);
}

/**
 * The value to show.
 * @param {Choices} choices @param {string} name @param {number} value the server's
 */
export function shownValue(choices, name, value) {
  return choices[name]?.value ?? value;
}

/**
 * A session as it is once the server has taken what the command `id` asked for.
 * @template {{parameters?: Parameter[]}} Session
 * @param {Session} session @param {Choices} choices @param {string} id @returns {Session}
 */
export function withTaken(session, choices, id) {
  const isTaken = (/** @type {Parameter} */ { name }) => choices[parameterKey(name)]?.id === id;
  if (!session?.parameters?.some(isTaken)) return session;
  const parameters = session.parameters.map((each) => {
    return isTaken(each) ? { ...each, value: choices[parameterKey(each.name)].value } : each;
  });
  return { ...session, parameters };
}
