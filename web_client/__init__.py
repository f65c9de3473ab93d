"""The browser client: plain ES modules, served as they are; there is no build step.

Start reading at `main.js`, which wires the rest: `connection.js` (sockets) and `screen.js`
(decoding and showing) bring messages, `state.js` turns them into what the page shows, `page.js`
shows it. This package holds files only and imports no room.
"""

__all__: list[str] = []
