"""The server API, by Twirp (protobuf in HTTP bodies): what the agents package and tests call."""

from aiohttp import web
from google.protobuf.message import Message
from livekit.protocol import agent_dispatch, models, room

from livekit_server.agents import Agents
from livekit_server.peer import Peer
from livekit_server.rooms import Rooms
from livekit_server.tokens import Tokens


class Api:
    """Answers calls of the RoomService and of the AgentDispatchService."""

    def __init__(self, tokens: Tokens, rooms: Rooms, agents: Agents) -> None:
        self._tokens, self._rooms, self._agents = tokens, rooms, agents

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one call."""
        self._tokens.claims(request)
        body, method = await request.read(), request.match_info["method"]
        match method:
            case "CreateRoom":
                wanted = room.CreateRoomRequest.FromString(body).name
                return _said(self._rooms.named(wanted).info)
            case "ListRooms":
                return _said(room.ListRoomsResponse(rooms=[each.info for each in self._rooms]))
            case "DeleteRoom":
                return await self._delete_room(room.DeleteRoomRequest.FromString(body).room)
            case "ListParticipants":
                wanted = room.ListParticipantsRequest.FromString(body).room
                members = self._rooms.named(wanted).members.values()
                infos = [each.info for each in members]
                return _said(room.ListParticipantsResponse(participants=infos))
            case "GetParticipant":
                peer = self._found(room.RoomParticipantIdentity.FromString(body))
                return _said(peer.info) if peer else _missing()
            case "RemoveParticipant":
                return await self._remove(room.RoomParticipantIdentity.FromString(body))
            case "CreateDispatch":
                return await self._dispatch(body)
        return web.json_response({"code": "unimplemented", "msg": method}, status=501)

    def _found(self, wanted: room.RoomParticipantIdentity) -> Peer | None:
        return self._rooms.named(wanted.room).members.get(wanted.identity)

    async def _delete_room(self, name: str) -> web.Response:
        for peer in list(self._rooms.forget(name)):
            await peer.dismiss(models.DisconnectReason.ROOM_DELETED)
        return _said(room.DeleteRoomResponse())

    async def _remove(self, wanted: room.RoomParticipantIdentity) -> web.Response:
        peer = self._found(wanted)
        if peer is None:
            return _missing()
        await peer.dismiss(models.DisconnectReason.PARTICIPANT_REMOVED)
        return _said(room.RemoveParticipantResponse())

    async def _dispatch(self, body: bytes) -> web.Response:
        asked = agent_dispatch.CreateAgentDispatchRequest.FromString(body)
        where = self._rooms.named(asked.room).info
        job = await self._agents.dispatch(where, asked.agent_name, asked.metadata)
        return _said(
            agent_dispatch.AgentDispatch(
                id=job.dispatch_id,
                agent_name=asked.agent_name,
                room=asked.room,
                metadata=asked.metadata,
            )
        )


def _said(message: Message) -> web.Response:
    return web.Response(body=message.SerializeToString(), content_type="application/protobuf")


def _missing() -> web.Response:
    return web.json_response({"code": "not_found", "msg": "there is no such"}, status=404)
