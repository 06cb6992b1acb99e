"""The server's own certificate authority: one key pair that signs the serving certificate and client certificates.

Everything is in one folder (0700, keys 0600). The CA is created once and kept; leaf certificates are renewed when they are
about to expire or when their addresses change.
"""

import datetime
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from argosy.kube import chance, clock

__all__ = ["Authority", "KeyPair", "peer_identity", "server_context"]

_CA_LIFE = datetime.timedelta(days=3650)
_LEAF_LIFE = datetime.timedelta(days=365)
_RENEW_BEFORE = datetime.timedelta(days=30)


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates; `Authority.open(folder)` makes the CA at first start and finds it again later."""

    def __init__(self, pair: KeyPair, folder: Path | None = None):
        self.pair = pair
        self._folder = folder
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the CA key is not an elliptic-curve key")
        self._key = key

    @classmethod
    def open(cls, folder: Path) -> "Authority":
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        pair = _read(folder, "ca")
        if pair is None:
            pair = _new_authority()
            _write(folder, "ca", pair)
        return cls(pair, folder)

    @classmethod
    def ephemeral(cls) -> "Authority":
        """A CA that is not stored, for servers in memory."""
        return cls(_new_authority())

    @property
    def certificate(self) -> bytes:
        return self.pair.certificate

    def server_pair(self, names: Iterable[str]) -> KeyPair:
        """The serving certificate for these DNS names and addresses, kept in the folder while it is valid."""
        names = sorted(set(names))
        return self._kept(
            "server", lambda old: _covers(old, names), lambda: self.issue("argosy-server", names=names, server=True)
        )

    def client_pair(self, name: str, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate (CN = user, O = groups), kept in the folder under `name`."""
        groups = tuple(groups)
        return self._kept(name, lambda old: _identity(old) == (user, groups), lambda: self.issue(user, groups=groups))

    def issue(
        self, common_name: str, *, groups: Iterable[str] = (), names: Iterable[str] = (), server: bool = False
    ) -> KeyPair:
        """Sign a new leaf certificate, for serving or (by default) for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
            + [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        )
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), _LEAF_LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        alternatives = [_general_name(name) for name in names]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)

    def _kept(self, name: str, fits: Callable[[x509.Certificate], bool], make: Callable[[], KeyPair]) -> KeyPair:
        old = _read(self._folder, name) if self._folder else None
        if old is not None:
            certificate = x509.load_pem_x509_certificate(old.certificate)
            lives = certificate.not_valid_after_utc - _RENEW_BEFORE > clock.now()
            if lives and certificate.issuer == self._certificate.subject and fits(certificate):
                return old
        pair = make()
        if self._folder:
            _write(self._folder, name, pair)
        return pair


def server_context(pair: KeyPair, client_ca: bytes) -> ssl.SSLContext:
    """TLS for serving: client certificates are requested, and must be signed by `client_ca`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=client_ca.decode())
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="argosy-tls-") as folder:  # ssl reads key pairs from files only
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(path)
    return context


@lru_cache(maxsize=4096)  # parsing a certificate takes longer than the rest of a small request
def peer_identity(der: bytes) -> tuple[str, tuple[str, ...]]:
    """User name and groups of a verified client certificate; the name is empty where it has no common name."""
    return _identity(x509.load_der_x509_certificate(der))


def _identity(certificate: x509.Certificate) -> tuple[str, tuple[str, ...]]:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return (str(names[0].value) if names else "", tuple(str(group.value) for group in groups))


def _new_authority() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial-like suffix tells two authorities apart for clients that trust both.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"argosy-ca-{chance.token(4).hex()}")])
    certificate = (
        _builder(subject, subject, key.public_key(), _CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, life: datetime.timedelta
) -> x509.CertificateBuilder:
    now = clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))  # allows for clock skew
        .not_valid_after(now + life)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _covers(certificate: x509.Certificate, names: list[str]) -> bool:
    try:
        present = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return not names
    have = {str(name) for name in present.get_values_for_type(x509.DNSName)}
    have |= {str(address) for address in present.get_values_for_type(x509.IPAddress)}
    return have >= set(names)


def _read(folder: Path, name: str) -> KeyPair | None:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if not (certificate.exists() and key.exists()):
        return None
    return KeyPair(certificate.read_bytes(), key.read_bytes())


def _write(folder: Path, name: str, pair: KeyPair) -> None:
    """The key first and both by rename, so that a crash never leaves a certificate without its key."""
    for suffix, content, mode in (("key", pair.key, 0o600), ("crt", pair.certificate, 0o644)):
        path = folder / f"{name}.{suffix}"
        temporary = path.with_suffix(f".{suffix}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
