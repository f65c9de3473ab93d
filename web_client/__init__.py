"""The browser client: plain ES modules, served as they are; there is no build step.

Start reading at `main.js`, which wires the rest. `connection.js` keeps to a session, over what
`dialer.js` dials: a peer connection (`peer_attachment.js`) or a socket (`socket_attachment.js`), as
`route.js` says. Their messages go through `state.js`, a pure reducer, into what `page.js` shows;
their pictures to `peer_screen.js` or `screen.js`. This package holds files only, and imports no
room.
"""

__all__: list[str] = []
