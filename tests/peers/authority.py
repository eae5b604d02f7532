"""A private certificate authority, and what it certifies: a server on this machine, and a client."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import List, Optional, Tuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]


class Authority:
    """Files of an authority.

    :param folder: to keep them in
    :ivar ca: path of its certificate
    :ivar client: paths of a client's certificate and key
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("private authority of the tests")
        certificate = self._sign(self._name, self._key.public_key(), ca=True)
        self.ca = str(self._write("ca.pem", certificate.public_bytes(serialization.Encoding.PEM)))
        self._server = self._certify("server")
        self.client = self._certify("client")

    def server(self, asks_clients: bool = False) -> ssl.SSLContext:
        """A context for a server on 127.0.0.1, localhost and mcp.example.org."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._server)
        if asks_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context

    def _certify(self, name: str) -> Tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        names: List[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.DNSName("localhost"),
            x509.DNSName("mcp.example.org"),
        ]
        certificate = self._sign(_named(name), key.public_key(), names)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            str(self._write(name + ".pem", certificate.public_bytes(serialization.Encoding.PEM))),
            str(self._write(name + ".key", private)),
        )

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        names: Optional[List[x509.GeneralName]] = None,
        ca: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.timedelta(days=1)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if ca:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(data)
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
