"""What counts as an answer: `Status`, `Certificate`, `Ray`, `Solution`."""

from stiction.solutions.certificate import Certificate, certify
from stiction.solutions.contact import ContactCertificate, ContactSolution, Mode
from stiction.solutions.ray import Ray
from stiction.solutions.solution import Solution
from stiction.solutions.status import Status

__all__ = [
    "Certificate",
    "ContactCertificate",
    "ContactSolution",
    "Mode",
    "Ray",
    "Solution",
    "Status",
    "certify",
]
