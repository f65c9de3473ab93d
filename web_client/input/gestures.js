// Listens to keys, pointers, buttons and forms, and calls the actions for them.

import { listenToButton, listenToKeyboard, takesText } from "./keys.js";

/**
 * @typedef {object} Actions
 * @property {import("./keys.js").HeldKeys} held
 * @property {import("./control_buttons.js").ControlButtons} keyButtons
 * @property {import("../transport/connection.js").Connection} connection
 * @property {(text: string) => void} say send a prompt
 * @property {(text: string) => boolean} ask send a question; returns whether it was sent
 * @property {(message: {type: string}) => void} dispatch
 * @property {() => boolean} onSound toggles sound and returns whether it is on
 * @property {(choice: import("../transport/transport_choice.js").Choice) => void} onTransport
 * @property {() => string | null} speaker the loop of the text
 */

export class Gestures {
  #page;
  #actions;

  /** @param {import("../ui/page.js").Page} page @param {Actions} actions */
  constructor(page, actions) {
    this.#page = page;
    this.#actions = actions;
  }

  listen() {
    this.#listenToWalking();
    this.#listenToCommands();
    this.#listenToPrompt();
    this.#listenToTalk();
    const { connection, dispatch, onSound, onTransport } = this.#actions;
    this.#on("overlay-action", "click", () => {
      if (this.#part("overlay-action").dataset.action === "renew") connection.renew();
      else connection.retry();
    });
    this.#on("error-close", "click", () => dispatch({ type: "page.error_read" }));
    this.#on("keep-close", "click", () => dispatch({ type: "page.put_away" }));
    this.#on("sound", "click", () => {
      this.#part("sound").setAttribute("aria-pressed", String(onSound()));
    });
    this.#on("transport", "change", () => onTransport(this.#part("transport").value));
  }

  /** @param {string} name @returns {any} */
  #part(name) {
    return this.#page.part(name);
  }

  /** @param {string} part @param {string} type @param {(event: any) => void} listener */
  #on(part, type, listener) {
    this.#part(part).addEventListener(type, listener);
  }

  #listenToWalking() {
    const { held, keyButtons, connection } = this.#actions;
    const releaseAll = () => {
      keyButtons.forget();
      if (held.forget()) connection.send("release_all");
    };
    const meaningOf = (/** @type {string} */ code) => keyButtons.meaningOf(code);
    listenToKeyboard({ window, document, held, releaseAll, meaningOf });
    for (const button of this.#part("pad").querySelectorAll("button")) {
      listenToButton(button, button.dataset.direction, held);
    }
  }

  #listenToCommands() {
    for (const tool of document.querySelectorAll("[data-command]")) {
      tool.addEventListener("click", () => {
        const command = /** @type {HTMLElement} */ (tool).dataset.command ?? "";
        if (isUsable(tool)) this.#actions.connection.send(command);
      });
    }
  }

  #listenToPrompt() {
    const { say } = this.#actions;
    this.#on("ask", "submit", (event) => {
      event.preventDefault();
      say(this.#part("prompt").value);
      this.#walkAgain();
    });
    this.#on("chips", "click", ({ target }) => {
      const chip = target.closest("button");
      if (chip === null) return;
      this.#part("prompt").value = chip.textContent;
      say(chip.textContent);
    });
    this.#on("prompt", "keydown", ({ key }) => key === "Escape" && this.#walkAgain());
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || takesText(event.target)) return;
      const field = [this.#part("prompt"), this.#part("question")].find(isShown);
      if (field === undefined) return;
      event.preventDefault();
      field.select();
    });
  }

  #listenToTalk() {
    const { ask, connection, speaker } = this.#actions;
    this.#on("question-form", "submit", (event) => {
      event.preventDefault();
      const field = this.#part("question");
      if (field.value.trim() === "" || !ask(field.value)) return;
      field.value = "";
      this.#walkAgain();
    });
    this.#on("question", "keydown", ({ key }) => key === "Escape" && this.#walkAgain());
    this.#on("hush", "click", () => {
      const loop = speaker();
      if (loop !== null && isUsable(this.#part("hush"))) connection.send("interrupt", { loop });
    });
  }

  #walkAgain() {
    this.#part("picture").focus();
  }
}

/** @param {Element} button */
function isUsable(button) {
  return button.getAttribute("aria-disabled") !== "true";
}

/** @param {HTMLElement} element */
function isShown(element) {
  return element.offsetParent !== null;
}
