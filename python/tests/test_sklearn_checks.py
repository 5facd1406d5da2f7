"""All of scikit-learn's checks, with no expected failures: of a closed form, and of chains."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from reprior import BNNClassifier, BNNRegressor

#: Chains of a small network; checks that learn something need some draws.
CHAINS = {"chains": 2, "warmup": 40, "draws": 20, "thin": 1, "projections": 4}

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks(
    [
        BNNRegressor((16,), method="nngp"),
        BNNRegressor((16,), settings=CHAINS, n_jobs=1),
        BNNClassifier((16,), settings=CHAINS, n_jobs=1),
        BNNClassifier((16,), likelihood="gaussian", method="nngp"),
    ]
)
def test_checks(estimator, check):
    check(estimator)
