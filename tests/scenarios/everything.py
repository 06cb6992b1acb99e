"""All scenarios under one name, for the modules that run them."""

from tests.scenarios.braking import *  # noqa: F403
from tests.scenarios.causes import *  # noqa: F403
from tests.scenarios.custom import *  # noqa: F403
from tests.scenarios.divided import *  # noqa: F403
from tests.scenarios.drift import *  # noqa: F403
from tests.scenarios.drifting import *  # noqa: F403
from tests.scenarios.followers import *  # noqa: F403
from tests.scenarios.membership import *  # noqa: F403
from tests.scenarios.migration import *  # noqa: F403
from tests.scenarios.mistakes import *  # noqa: F403
from tests.scenarios.namespaces import *  # noqa: F403
from tests.scenarios.outages import *  # noqa: F403
from tests.scenarios.overrides import *  # noqa: F403
from tests.scenarios.plans import *  # noqa: F403
from tests.scenarios.profiles import *  # noqa: F403
from tests.scenarios.removals import *  # noqa: F403
from tests.scenarios.restarts import *  # noqa: F403
from tests.scenarios.retention import *  # noqa: F403
from tests.scenarios.selecting import *  # noqa: F403
from tests.scenarios.statuses import *  # noqa: F403
from tests.scenarios.staying import *  # noqa: F403
from tests.scenarios.workloads import *  # noqa: F403
