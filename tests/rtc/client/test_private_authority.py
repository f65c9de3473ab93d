"""The Python client at an https address, whose certificate a private authority has signed."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from cut_line import CutLine
from rtc_rig import ServerRig

from reverie.rtc import ConnectionLostError, connect
from reverie.sessions import Session


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, by: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority, and a certificate for 127.0.0.1; return the authority's own."""
    folder = tmp_path_factory.mktemp("authority")
    root, leaf = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    own = (
        _signed("ours", root, "ours", root)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(root, hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    served = _signed("server", leaf, "ours", root).add_extension(address, False)
    pem = serialization.Encoding.PEM
    (folder / "own.pem").write_bytes(own.public_bytes(pem))
    private = leaf.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = served.sign(root, hashes.SHA256()).public_bytes(pem)
    (folder / "server.pem").write_bytes(private + certificate)
    return folder / "own.pem"


@pytest.fixture
async def address(rig: ServerRig, authority: Path) -> AsyncIterator[str]:
    """Put a proxy in front of the server that ends TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.with_name("server.pem"))
    async with CutLine(int(rig.url.rpartition(":")[2]), context) as line:
        yield line.url


async def first_picture(session: Session) -> None:
    async for event in session.stream():
        if event.type == "media.chunk":
            return


async def test_it_trusts_the_authority_that_it_is_told(address: str, authority: Path) -> None:
    trust = ssl.create_default_context(cafile=authority)
    async with connect(address, ssl=trust) as session:
        await first_picture(session)
        async with session.fork() as other:
            await first_picture(other)


async def test_it_trusts_the_authority_that_the_environment_names(
    address: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with connect(address) as session:
        await first_picture(session)


async def test_it_trusts_no_other(address: str) -> None:
    with pytest.raises(ConnectionLostError, match="certificate verify failed"):
        async with connect(address):
            pytest.fail("the client trusted an unknown authority")
