"""Certificate signing requests: only /approval approves, and it changes nothing but the conditions."""

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.server.conftest import HttpClient

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
APPROVED = {"type": "Approved", "status": "True", "reason": "Fine"}


def signing_request() -> dict[str, object]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": "example.com/s", "usages": ["client auth"]}
    api = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**api, "metadata": {"name": "one"}, "spec": spec}


async def test_status_cannot_approve_and_approval_can(client: HttpClient) -> None:
    assert (await client.post(REQUESTS, signing_request())).code == 201
    refused = await client.patch(f"{REQUESTS}/one/status", {"status": {"conditions": [APPROVED]}})
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["message"] == (
        'Forbidden: updates may not add a condition of type "Approved"'
    )
    approved = await client.patch(
        f"{REQUESTS}/one/approval", {"status": {"conditions": [APPROVED], "certificate": "AA=="}}
    )
    assert approved.code == 200
    (condition,) = approved.body["status"]["conditions"]
    assert condition["type"] == "Approved"
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"]
    assert "certificate" not in approved.body["status"]
