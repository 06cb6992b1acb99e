"""A cluster's certificates and keys. Independent of the embedded server's code, which these clusters are compared with."""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "KeyPair", "write_signing_key"]

_LIFETIME = datetime.timedelta(days=7)


class KeyPair(msgspec.Struct, frozen=True):
    """Both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"

    def write(self, folder: Path, name: str) -> None:
        """As NAME.crt and NAME.key."""
        (folder / f"{name}.crt").write_bytes(self.certificate)
        _write_private(folder / f"{name}.key", self.key)


class Authority:
    """A certificate authority that lives as long as its cluster."""

    def __init__(self, name: str):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        authority = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = self._sign(self._name, self._key.public_key(), [(authority, True)])
        self.certificate = self._certificate.public_bytes(Encoding.PEM)

    def write_key(self, path: Path) -> None:
        """For components that sign in its name."""
        _write_private(path, self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def server(self, names: Sequence[str], addresses: Sequence[str]) -> KeyPair:
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._pair(names[0], (), [(x509.SubjectAlternativeName(alternatives), False), (usage, False)])

    def client(self, user: str, groups: Sequence[str] = (), lifetime: datetime.timedelta = _LIFETIME) -> KeyPair:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._pair(user, groups, [(usage, False)], lifetime)

    def _pair(
        self,
        name: str,
        groups: Sequence[str],
        extensions: list[tuple[x509.ExtensionType, bool]],
        lifetime: datetime.timedelta = _LIFETIME,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        plain = (x509.BasicConstraints(ca=False, path_length=None), True)
        certificate = self._sign(subject, key.public_key(), [plain, *extensions], lifetime)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return KeyPair(certificate.public_bytes(Encoding.PEM), private)

    def _sign(
        self,
        subject: x509.Name,
        public: ec.EllipticCurvePublicKey,
        extensions: list[tuple[x509.ExtensionType, bool]],
        lifetime: datetime.timedelta = _LIFETIME,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            # A negative lifetime makes one that has expired.
            .not_valid_before(min(now, now + lifetime) - datetime.timedelta(hours=1))
            .not_valid_after(now + lifetime)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        # Python 3.13 and newer refuse a chain without these.
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        if subject != self._name:
            builder = builder.add_extension(issuer, False)
        usage = _key_usage(authority=subject == self._name)
        return builder.add_extension(usage, True).sign(self._key, hashes.SHA256())


def write_signing_key(folder: Path) -> None:
    """The key pair service account tokens are signed with: service-account.key and .pub."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_private(folder / "service-account.key", private)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "service-account.pub").write_bytes(public)


def _key_usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_private(path: Path, key: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(key)
