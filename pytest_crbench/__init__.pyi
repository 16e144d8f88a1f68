from .core.agent import Agent as Agent
from .core.agent import AgentKind as AgentKind
from .core.agent import AgentTask as AgentTask
from .core.datasets import DatasetKind as DatasetKind
from .core.datasets import Note as Note
from .core.errors import InfraError as InfraError
from .core.errors import StageError as StageError
from .core.errors import UsageError as UsageError
from .core.model import Changes as Changes
from .core.model import Check as Check
from .core.model import Dataset as Dataset
from .core.model import Environment as Environment
from .core.model import Instance as Instance
from .core.model import PullRequest as PullRequest
from .core.model import Review as Review
from .core.model import ReviewComment as ReviewComment
from .core.model import Revision as Revision
from .core.model import Source as Source
from .core.model import Verdict as Verdict
from .core.report import Report as Report
from .core.reviewer import Reviewer as Reviewer
from .core.reviewer import ReviewerKind as ReviewerKind
from .core.reviewer import ReviewTask as ReviewTask
from .core.runner import Observation as Observation
from .core.runner import Runner as Runner
from .core.sandbox import Backend as Backend
from .core.sandbox import EnvironmentRef as EnvironmentRef
from .core.sandbox import ExecResult as ExecResult
from .core.sandbox import Limits as Limits
from .core.sandbox import Sandbox as Sandbox
from .core.sandbox import SandboxKind as SandboxKind
from .core.sandbox import SandboxSettings as SandboxSettings
from .core.scoring import Decider as Decider
from .core.scoring import Numbers as Numbers
from .core.scoring import Scoring as Scoring
from .core.settings import Settings as Settings
from .core.status import Status as Status
from .reports.results import load_results as load_results
from .run.run import Run as Run
from .statistics.results import Results as Results

__version__: str

class OutsideFailure(Exception): ...
