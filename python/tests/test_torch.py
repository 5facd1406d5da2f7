"""Laplace approximations of torch's networks against laplace-torch's numbers (golden/laplace_torch.json), and chains that begin at them.

The networks are stand-ins (torch_like), so that no torch is needed.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch_like
from conftest import FAST

import reprior.torch
from reprior import _graph, _network

GOLDEN = json.loads((Path(__file__).parent / "golden" / "laplace_torch.json").read_text())
NEW = torch_like.table(46)[0][40:]


def loader(X, y, size=16):
    """Batches of tensors."""
    parts = range(0, len(X), size)
    return [(torch_like.Tensor(X[at : at + size]), torch_like.Tensor(y[at : at + size])) for at in parts]


def fitted(case, precision=2.0):
    X, target, classes = torch_like.table(40)
    is_regression = case["likelihood"] == "regression"
    structure = {"kron": "kron-separate"}.get(case["structure"], case["structure"])
    la = reprior.torch.Laplace(
        torch_like.dense(1 if is_regression else 3),
        case["likelihood"],
        subset_of_weights=case["subset"],
        hessian_structure=structure,
        prior_precision=precision,
        sigma_noise=0.3,
    )
    return la.fit(loader(X, target[:, None] if is_regression else classes))


@pytest.mark.parametrize("case", GOLDEN["laplace"], ids=lambda case: "-".join([case["likelihood"], case["subset"], case["structure"]]))
def test_numbers_are_those_of_laplace_torch(case):
    la = fitted(case)
    assert la.log_marginal_likelihood() == pytest.approx(case["log_marginal_likelihood"], rel=1e-4)
    if case["likelihood"] == "regression":
        mean, variance = la(NEW)
        assert np.allclose(mean[:, 0], case["mean"], atol=1e-4)
        assert np.allclose(variance[:, 0, 0], case["variance"], rtol=1e-4)
    else:
        for link in ("probit", "bridge"):
            assert np.allclose(la(NEW, link_approx=link), case[link], atol=1e-4)
    # theirs is where a hundred steps of a descent end
    theirs = fitted(case, case["prior_precision"]).log_marginal_likelihood()
    la.optimize_prior_precision()
    assert la.log_marginal_likelihood() > theirs - 1e-4
    assert fitted(case, la.prior_precision).log_marginal_likelihood() == pytest.approx(la.log_marginal_likelihood(), rel=1e-6)


def keras_like(kind, activation="linear", weights=(), **settings):
    """A layer with the names and attributes of Keras', as far as they are looked at."""

    def function(x):
        return x

    function.__name__ = activation
    own = {"activation": staticmethod(function), "get_weights": lambda self: list(weights), **settings}
    return type(kind, (), own)()


def keras_sequence(*layers):
    return type("Sequential", (), {"layers": layers, "get_weights": lambda self: None})()


def test_a_dense_network_of_keras_is_the_same_of_torch():
    """A kernel is the transpose of torch's weights; a softmax at the end is left to the likelihood."""
    X, _, classes = torch_like.table(40)
    first, last = torch_like.Linear(3, 5, 0.1), torch_like.Linear(5, 3, 0.4)
    torchs = torch_like.Sequential(first, torch_like.Tanh(), last)

    def dense(linear, activation):
        weight, bias = (linear.state_dict()[name].numpy() for name in ("weight", "bias"))
        return keras_like("Dense", activation, [weight.T, bias])

    kerass = keras_sequence(keras_like("InputLayer"), dense(first, "tanh"), keras_like("Dropout"), dense(last, "softmax"))
    one, other = (reprior.torch.Laplace(network, "classification").fit(X, classes) for network in (torchs, kerass))
    assert np.array_equal(one(X), other(X))
    assert one.log_marginal_likelihood() == other.log_marginal_likelihood()
    with_activation = keras_sequence(dense(first, "linear"), keras_like("Activation", "tanh"), dense(last, "linear"))
    assert np.array_equal(reprior.torch.Laplace(with_activation, "classification").fit(X, classes)(X), one(X))
    for wrong, said in (
        (keras_sequence(keras_like("Conv2D"), dense(last, "linear")), "layer 0 \\(Conv2D\\) is not known"),
        (keras_sequence(dense(first, "selu"), dense(last, "linear")), "has the activation 'selu'"),
        (keras_sequence(dense(first, "softmax"), dense(last, "linear")), "has the activation 'softmax'"),
        (keras_sequence(dense(first, "linear"), keras_like("ReLU", max_value=6.0), dense(last, "linear")), "settings of its own"),
        (type("Functional", (), {"layers": [], "get_weights": None})(), "a Functional of Keras"),
    ):
        with pytest.raises(TypeError, match=said):
            reprior.torch.Laplace(wrong, "classification").fit(X, classes)


def test_a_network_of_keras_keeps_its_last_activation_or_is_refused():
    X, target, classes = torch_like.table(40)

    def ending(activation, outputs):
        return keras_sequence(keras_like("Dense", "tanh", [np.ones((3, 4)), np.ones(4)]), keras_like("Dense", activation, [np.ones((4, outputs))]))

    fast = {**FAST, "network": None, "warmup": 5, "draws": 5}
    for network, said in ((ending("sigmoid", 1), "likelihood='bernoulli'"), (ending("softmax", 3), "likelihood='categorical'")):
        y = target[:, None] if "bernoulli" in said else np.eye(3)[classes]
        # each in its own words
        with pytest.raises(ValueError, match="which the gaussian likelihood does not have.*likelihood='classification'$"):
            reprior.torch.Laplace(network, "regression").fit(X, y)
        with pytest.raises(ValueError, match=said):
            reprior.torch.sample(network, X, y, **fast)
    # nothing else would help
    with pytest.raises(ValueError, match="the categorical likelihood does not have: take it off the network$"):
        reprior.torch.Laplace(ending("sigmoid", 3), "classification").fit(X, classes)
    run = reprior.torch.sample(ending("sigmoid", 1), X, np.minimum(classes, 1), **fast)
    assert run.settings["model"]["likelihood"] == "bernoulli"


def test_a_module_that_is_used_again_counts_each_time():
    """Without weights; with weights it is named. Children of torch's modules are each module once."""
    X, target, _ = torch_like.table(40)
    parts = [torch_like.Linear(3, 5, 0.1), torch_like.Linear(5, 4, 0.2), torch_like.Linear(4, 1, 0.3)]

    def network(first, second):
        return torch_like.Sequential(parts[0], first, None, parts[1], second, parts[2])

    one, block = torch_like.Tanh(), torch_like.Sequential(torch_like.Tanh())
    expected = reprior.torch.Laplace(network(torch_like.Tanh(), torch_like.Tanh()), "regression").fit(X, target)(X)
    for again in (one, block):
        found = reprior.torch.Laplace(network(again, again), "regression").fit(X, target)(X)
        assert all(np.array_equal(*both) for both in zip(found, expected))
    square = torch_like.Linear(3, 3, 0.1)
    for twice, said in (
        (torch_like.Sequential(square, one, square, one, torch_like.Linear(3, 1, 0.3)), "2 \\(Linear\\) is 0 again"),
        (torch_like.Sequential(torch_like.Sequential(square), torch_like.Sequential(one, square), torch_like.Linear(3, 1, 0.3)), "1.1 \\(Linear\\) is 0.0 again"),
    ):
        with pytest.raises(TypeError, match=f"{said}: layers that share their weights are not known"):
            reprior.torch.Laplace(twice, "regression").fit(X, target)


def test_one_output_is_of_two_classes():
    """The last layer's posterior by hand: of the logit f its variance v, and probabilities of f/√(1 + πv/8)."""
    X, _, classes = torch_like.table(40)
    y = np.minimum(classes, 1)
    network = torch_like.dense(1)
    settings = {"subset_of_weights": "last_layer", "hessian_structure": "full", "prior_precision": 2.0}
    la = reprior.torch.Laplace(network, "classification", **settings).fit(loader(X, y[:, None].astype(float)))
    layers = [network._modules[at] for at in "04"] + [network._modules["3"]._modules["0"]]
    (w0, b0), (w2, b2), (w1, b1) = ([layer.state_dict()[name].numpy() for name in ("weight", "bias")] for layer in layers)
    features = np.tanh(np.tanh(X @ w0.T + b0) @ w1.T + b1)
    rows = np.hstack([features, np.ones((40, 1))])
    logits = features @ w2[0] + b2
    p = 1 / (1 + np.exp(-logits))
    variance = ((rows @ np.linalg.inv(rows.T @ (rows * (p * (1 - p))[:, None]) + 2 * np.eye(5))) * rows).sum(axis=1)
    expected = 1 / (1 + np.exp(-logits / np.sqrt(1 + np.pi * variance / 8)))
    found = la(X)
    assert found.shape == (40, 2) and np.allclose(found[:, 1], expected, atol=1e-6) and np.allclose(found.sum(axis=1), 1)
    la.optimize_prior_precision("gridsearch", val_loader=(X, y), grid_size=3)
    # logits, as Keras has them before a sigmoid
    kernel = [np.ones((3, 1)), np.zeros(1)]
    keras = keras_sequence(keras_like("Dense", "sigmoid", kernel))
    assert reprior.torch.Laplace(keras, "classification").fit(X, y)(X).shape == (40, 2)
    for wrong in (classes, np.zeros(40, dtype=int)):
        with pytest.raises(ValueError, match="y has [13] class(es)? and the network 1 output, which is of two classes"):
            reprior.torch.Laplace(network, "classification").fit(X, wrong)


def test_what_is_set_anew_is_computed_anew():
    case = {"likelihood": "regression", "subset": "all", "structure": "full"}
    la, other = fitted(case), fitted(case, precision=20.0)
    before = la(NEW)[1]
    la.prior_precision = 20.0
    assert np.array_equal(la(NEW)[1], other(NEW)[1]) and not np.allclose(la(NEW)[1], before)
    la.sigma_noise = 0.1
    assert (la(NEW)[1] < other(NEW)[1]).all()


def test_draws_of_weights_are_another_prediction():
    la = fitted({"likelihood": "classification", "subset": "all", "structure": "kron"})
    closed, drawn = la(NEW), la(NEW, pred_type="nn")
    assert closed.shape == drawn.shape == (6, 3)
    assert np.allclose(drawn.sum(axis=1), 1) and not np.allclose(closed, drawn, atol=1e-3)


def test_predictions_are_tensors_where_the_inputs_are(monkeypatch):
    """With the one function of torch that is called."""
    made = SimpleNamespace(as_tensor=lambda values, dtype, device: (len(values), dtype, device))
    monkeypatch.setitem(sys.modules, "torch", made)
    la = fitted({"likelihood": "classification", "subset": "last_layer", "structure": "diag"})
    x = torch_like.Tensor(NEW)
    x.dtype, x.device = SimpleNamespace(is_floating_point=True), "cuda:1"
    assert la(x) == (6, x.dtype, "cuda:1")


def test_a_network_of_convolutions_is_torchs():
    images, y = torch_like.images(24), np.arange(24) % 3
    la = reprior.torch.Laplace(torch_like.convolutions(3), "regression", hessian_structure="diag").fit(images, np.eye(3)[y])
    mean, variance = la(images[:4])
    assert np.allclose(mean, GOLDEN["convolutions"], atol=1e-6)
    assert variance.shape == (4, 3)
    # chains that begin there have the statistics of its batch normalisation
    still = {"method": "pcn", "step_size": 1e-6, "arrival": 0, "warmup": 1, "draws": 2, "thin": 1, "chains": 1, "likelihood": "student-t"}
    targets = np.eye(3)[y]
    run = reprior.torch.sample(
        torch_like.convolutions(3), images, targets, coordinates="standard", noise=0.3, precision="f64", progress=False, **still
    )
    assert np.allclose(run.predict(np.moveaxis(images[:4], 1, -1)).mean, GOLDEN["convolutions"], atol=1e-4)


def test_images_whose_rows_would_be_taken_for_channels_are_refused():
    """The network can be evaluated by hand: it has one convolution, as large as the image."""
    for channels, size in ((5, 5), (6, 4)):
        images = torch_like.numbers((12, channels, size, size), 0.7)
        convolution, readout = torch_like.Conv2d(channels, 3, size, 0.1), torch_like.Linear(3, 1, 0.3)
        network = torch_like.Sequential(convolution, torch_like.Tanh(), torch_like.Flatten(), readout)
        la = reprior.torch.Laplace(network, "regression", hessian_structure="diag")
        if size <= 4:
            with pytest.raises(ValueError, match="images of 4 x 4 with 6 channels"):
                la.fit(images, np.arange(12.0))
            continue
        hidden, last = (module.state_dict() for module in (convolution, readout))
        units = np.tanh(np.einsum("nchw,ochw->no", images, hidden["weight"].numpy()) + hidden["bias"].numpy())
        expected = units @ last["weight"].numpy().T + last["bias"].numpy()
        assert np.allclose(la.fit(images, np.arange(12.0))(images)[0], expected, atol=1e-6)


def test_whole_numbers_are_targets_of_a_regression():
    images, y = torch_like.images(24), np.arange(24) % 5
    rows = torch_like.table(24)[0]
    for network, X in ((torch_like.convolutions(1), images), (torch_like.dense(1), rows)):
        whole, real = (reprior.torch.Laplace(network, "regression", hessian_structure="diag").fit(X, own)(X)[0] for own in (y, y + 0.0))
        assert np.array_equal(whole, real)
    fast = {**FAST, "network": None, "warmup": 5, "draws": 5, "train": 20, "noise": 0.3}
    run = reprior.torch.sample(torch_like.convolutions(1), images, y, likelihood="gaussian", **fast)
    assert run.predict(np.moveaxis(images, 1, -1)).mean.shape == (24,)


@pytest.fixture
def graphs(monkeypatch):
    """torch.fx, of the one network whose graph was recorded."""
    recorded = GOLDEN["residual"]["nodes"]

    def trace(model, known):
        nodes = torch_like.nodes(getattr(model, "graph", recorded))
        return _graph.layers(nodes, dict(model.named_children()), torch_like, known)

    monkeypatch.setattr(_network, "traced", trace)
    return recorded


def test_a_residual_network_is_torchs(graphs):
    images, y = torch_like.images(24), np.arange(24) % 3
    la = reprior.torch.Laplace(torch_like.Residual(3), "regression", hessian_structure="diag").fit(images, np.eye(3)[y])
    assert np.allclose(la(images[:4])[0], GOLDEN["residual"]["outputs"], atol=1e-6)
    # all weights, and chains on all data and on some
    la = reprior.torch.Laplace(torch_like.Residual(3), "classification", subset_of_weights="all", hessian_structure="kron").fit(images, y)
    assert la(images[:4]).shape == (4, 3)
    still = {"method": "pcn", "step_size": 1e-6, "arrival": 0, "warmup": 1, "draws": 2, "thin": 1, "chains": 1, "likelihood": "student-t"}
    run = reprior.torch.sample(
        torch_like.Residual(3), images, np.eye(3)[y], coordinates="standard", noise=0.3, precision="f64", progress=False, **still
    )
    assert np.allclose(run.predict(np.moveaxis(images[:4], 1, -1)).mean, GOLDEN["residual"]["outputs"], atol=1e-4)
    run = reprior.torch.sample(torch_like.Residual(3), images, y, method="sgld", epochs=20, draws=2, progress=False)
    assert run.predict(np.moveaxis(images, 1, -1)).probabilities.shape == (24, 3)


def test_a_graph_that_is_no_network_of_layers_and_sums_is_refused(graphs):
    images, y = torch_like.images(24), np.arange(24) % 3

    def changed(name, **fields):
        return [{**node, **fields} if node["name"] == name else node for node in graphs]

    twice = [{**node, "target": "stem"} if node["target"] == "first" else node for node in graphs]
    halves = {"name": "x2", "op": "placeholder", "target": "x2", "args": [], "kwargs": {}}
    for graph, kind, said in (
        (changed("relu", target="sigmoid"), TypeError, "computes sigmoid"),
        (changed("add", kwargs={"alpha": 2}), TypeError, "add is a sum that is not one of two branches"),
        (changed("add", args=[{"node": "relu"}, 1.0]), TypeError, "not one of two branches"),
        (changed("dropout", kwargs={}), TypeError, "computes dropout"),
        (twice, TypeError, "stem \\(Conv2d\\) is used twice"),
        ([halves, *graphs], TypeError, "takes 2 inputs"),
        (changed("output", args=[[{"node": "readout"}, {"node": "tanh"}]]), TypeError, "more than one tensor"),
        (changed("view", args=[{"node": "adaptive_avg_pool2d"}, 2, -1]), TypeError, "computes view"),
        (changed("output", args=[{"node": "view"}]), ValueError, "ends with view \\(Flatten\\)"),
    ):
        network = torch_like.Residual(3)
        network.graph = graph
        with pytest.raises(kind, match=said):
            reprior.torch.Laplace(network, "classification").fit(images, y)


def graph_of(*calls):
    """A graph: what each call is called, what it calls (a module's path, or a function with brackets), and its arguments, words for nodes."""
    recorded = [("x", "placeholder", "x", [])]
    for name, called, *arguments in calls:
        function = called.removesuffix("()")
        recorded.append((name, "call_module" if function == called else "call_function", function, arguments))
    recorded.append(("output", "output", "output", [calls[-1][0]]))
    node = {"kwargs": {}}
    arguments = [[{"node": one} if isinstance(one, str) else one for one in own] for *_, own in recorded]
    return [{**node, "name": name, "op": op, "target": target, "args": own} for (name, op, target, _), own in zip(recorded, arguments)]


class Parts(torch_like.Residual):
    """A network of named modules, which does what its graph says."""

    def __init__(self, graph, **parts):
        torch_like.Module.__init__(self)
        self.graph, self.parts = graph, parts


def test_a_sum_of_branches_without_weights_is_one_more_layer(graphs):
    """Whether there are sums with weights or not."""
    X, target, _ = torch_like.table(40)
    first, last, beside = torch_like.Linear(3, 4, 0.1), torch_like.Linear(4, 1, 0.2), torch_like.Linear(4, 4, 0.3)
    weights = {name: [layer.state_dict()[part].numpy() for part in ("weight", "bias")] for name, layer in (("first", first), ("last", last), ("beside", beside))}

    def dense(name, h):
        weight, bias = weights[name]
        return h @ weight.T + bias

    alone = [("h", "first", "x"), ("t", "tanh()", "h"), ("s", "add()", "h", "t")]
    h = dense("first", X)
    h = h + np.tanh(h)
    both = [*alone, ("b", "beside", "s"), ("r", "add()", "s", "b")]
    for calls, features in ((alone, h), (both, h + dense("beside", h)), ([*both, ("u", "tanh()", "r"), ("v", "add()", "r", "u")], None)):
        if features is None:
            features = h + dense("beside", h)
            features = features + np.tanh(features)
        graph = graph_of(*calls, ("out", "last", calls[-1][0]))
        network = Parts(graph, first=first, beside=beside, last=last)
        la = reprior.torch.Laplace(network, "regression").fit(X, target)
        assert np.allclose(la(X)[0], dense("last", features), atol=1e-6)


def test_arguments_of_functions_are_the_modules(graphs):
    images, y = torch_like.images(24), np.arange(24) % 3
    convolution, readout = torch_like.Conv2d(2, 3, 3, 0.1), torch_like.Linear(27, 3, 0.3)

    def network(*arguments):
        calls = [("h", "conv", "x"), ("r", "relu()", "h", False), ("p", "avg_pool2d()", "r", *arguments), ("f", "flatten()", "p", 1)]
        return Parts(graph_of(*calls, ("out", "readout", "f")), conv=convolution, readout=readout)

    sequence = torch_like.Sequential(convolution, torch_like.ReLU(), torch_like.AvgPool2d(2), torch_like.Flatten(), readout)
    expected = reprior.torch.Laplace(sequence, "classification").fit(images, y)(images)
    for arguments in ((2,), (2, 2, 0, False, True), (2, 2, 0, False, True, None)):
        assert np.array_equal(reprior.torch.Laplace(network(*arguments), "classification").fit(images, y)(images), expected)
    with pytest.raises(ValueError, match="p \\(AvgPool2d\\) has divisor_override=3"):
        reprior.torch.Laplace(network(2, 2, 0, False, True, 3), "classification").fit(images, y)
    with pytest.raises(TypeError, match="computes avg_pool2d"):
        reprior.torch.Laplace(network(2, 2, 0, False, True, None, 1), "classification").fit(images, y)


def test_chains_begin_at_the_network(tmp_path):
    X, target, classes = torch_like.table(40)
    network = torch_like.dense(1)
    still = {"method": "pcn", "step_size": 1e-6, "arrival": 0, "warmup": 1, "draws": 2, "thin": 1, "chains": 1}
    # with a Gaussian likelihood the readout is integrated out in predictions
    whole = {"likelihood": "student-t", "coordinates": "standard", "precision": "f64"}
    run = reprior.torch.sample(network, X, target, noise=0.3, progress=False, **whole, **still)
    la = reprior.torch.Laplace(network, "regression").fit(X, target)
    assert np.allclose(run.predict(X).mean, la(X)[0][:, 0], atol=1e-3)
    # and go on from there
    run = reprior.torch.sample(network, X, target, noise=0.3, out=tmp_path / "run", **{**FAST, "network": None})
    assert run.summary().draws == 30 and run.folder == tmp_path / "run"
    assert reprior.open(tmp_path / "run").resume(minutes=0.001, progress=False).summary().draws > 30
    run = reprior.torch.sample(network, X, target, noise=0.3, **{**FAST, "network": None})
    # the network's files are gone by now
    longer = run.resume(minutes=0.001, progress=False)
    assert longer.summary().draws > 30 and longer.predict(X).mean.shape == (40,)
    with pytest.raises(TypeError, match="`network`, which the model says"):
        reprior.torch.sample(network, X, target, **FAST)
    run = reprior.torch.sample(torch_like.dense(2), X, target, **{**FAST, "network": None, "train": 30})
    assert run.settings["model"]["likelihood"] == "gaussian-heteroscedastic" and run.settings["data"]["train"] == 30
    run = reprior.torch.sample(torch_like.dense(3), X, classes, method="sgld", epochs=20, draws=5, progress=False)
    assert run.predict(X).probabilities.shape == (40, 3)


def test_what_is_not_known_is_named():
    X, target, classes = torch_like.table(40)
    sequence, linear = torch_like.Sequential, torch_like.Linear
    for network, kind, said in (
        (torch_like.LSTM(), TypeError, "the network is a LSTM"),
        (sequence(linear(3, 4, 0.1), torch_like.Softmax(), linear(4, 1, 0.2)), TypeError, "1 is a Softmax"),
        (sequence(linear(3, 4, 0.1), torch_like.Tanh()), ValueError, "ends with 1 \\(Tanh\\)"),
        (sequence(torch_like.Conv2d(2, 3, 3, 0.1, groups=2), linear(3, 1, 0.2)), ValueError, "0 \\(Conv2d\\) has groups"),
        (sequence(torch_like.Conv2d(2, 3, 3, 0.1, padding=2), linear(3, 1, 0.2)), ValueError, "padding=2"),
        (sequence(torch_like.Flatten(2), linear(3, 1, 0.2)), ValueError, "dimensions of its own"),
        (sequence(torch_like.AvgPool2d(2, divisor_override=1), linear(3, 1, 0.2)), ValueError, "0 \\(AvgPool2d\\) has divisor_override=1"),
    ):
        with pytest.raises(kind, match=said):
            reprior.torch.Laplace(network, "regression").fit(X, target)
    with pytest.raises(ValueError, match="'regression'"):
        reprior.torch.Laplace(torch_like.dense(1), "reward")
    with pytest.raises(ValueError, match="every class"):
        reprior.torch.Laplace(torch_like.dense(3), "classification").fit(X, np.minimum(classes, 1))
    with pytest.raises(ValueError, match="call fit"):
        reprior.torch.Laplace(torch_like.dense(1), "regression")(X)
    with pytest.raises(ValueError, match="no batches"):
        reprior.torch.Laplace(torch_like.dense(1), "regression").fit([])
    la = fitted({"likelihood": "regression", "subset": "all", "structure": "diag"})
    with pytest.raises(ValueError, match="link_approx is 'probits'"):
        la(X, link_approx="probits")
    with pytest.raises(ValueError, match="pred_type is 'gml'"):
        la(X, pred_type="gml")
    with pytest.raises(ValueError, match="'marglik' or 'gridsearch'"):
        la.optimize_prior_precision("evidence")
    with pytest.raises(ValueError, match="needs val_loader"):
        la.optimize_prior_precision("gridsearch")


@pytest.mark.parametrize("likelihood", ["regression", "classification"])
def test_a_grid_of_precisions_is_searched_by_the_loss_of_other_data(likelihood):
    la = fitted({"likelihood": likelihood, "subset": "all", "structure": "diag"})
    X, target, classes = torch_like.table(60)
    y = (target if likelihood == "regression" else classes)[40:]
    by_hand = {}
    for precision in (0.01, 1.0, 100.0):
        la.prior_precision = precision
        if likelihood == "regression":
            mean, variance = la(X[40:])
            total = variance[:, 0, 0] + 0.3**2
            by_hand[precision] = (0.5 * np.log(2 * np.pi * total) + 0.5 * (y - mean[:, 0]) ** 2 / total).mean()
        else:
            by_hand[precision] = -np.log(la(X[40:])[np.arange(20), y]).mean()
    best = min(by_hand, key=by_hand.get)
    grid = {"log_prior_prec_min": -2, "log_prior_prec_max": 2, "grid_size": 3}
    for given in ((X[40:], y), loader(X[40:], y)):
        la.prior_precision = 3.0
        la.optimize_prior_precision("gridsearch", val_loader=given, **grid)
        assert la.prior_precision == pytest.approx(best)
