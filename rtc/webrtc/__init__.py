"""WebRTC: offers, ICE, peers, and the tracks and data channels of an attachment."""
