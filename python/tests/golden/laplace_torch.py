"""Makes laplace_torch.json: what laplace-torch and torch give for the networks of ``torch_like``. Run with both installed: python golden/laplace_torch.py"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from laplace import Laplace
from torch import fx, nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).parents[1]))
import torch_like

torch.set_default_dtype(torch.float64)


def real(module):
    """The torch module of a stand-in, with its numbers."""
    name = type(module).__name__
    if name == "Sequential":
        return nn.Sequential(*(real(child) for child in module.children()))
    if name == "Linear":
        made = nn.Linear(module.in_features, module.out_features, bias=module.bias is not None)
    elif name == "Conv2d":
        made = nn.Conv2d(
            module.state_dict()["weight"].numpy().shape[1], module.out_channels, module.kernel_size, module.stride, module.padding
        )
    elif name == "BatchNorm2d":
        made = nn.BatchNorm2d(len(module.state_dict()["weight"].numpy()))
    elif name == "MaxPool2d":
        made = nn.MaxPool2d(module.kernel_size)
    else:
        made = {"Tanh": nn.Tanh, "ReLU": nn.ReLU, "Dropout": nn.Dropout, "Flatten": nn.Flatten}[name]()
    made.load_state_dict({name: torch.as_tensor(tensor.numpy()) for name, tensor in module.state_dict().items()})
    return made


class Residual(nn.Module):
    """The network of ``torch_like.Residual``."""

    def __init__(self, parts):
        super().__init__()
        for name, module in parts.items():
            setattr(self, name, real(module))

    def forward(self, x):
        h = torch.relu(self.norm(self.stem(x)))
        h = nn.functional.relu(self.first_norm(self.first(h)) + h)
        other = self.third(torch.tanh(self.second(nn.functional.dropout(h, 0.5, self.training))))
        other += self.beside(h)
        pooled = nn.functional.adaptive_avg_pool2d(torch.tanh(other), 1)
        return self.readout(pooled.view(pooled.size(0), -1))


def recorded(graph):
    """The nodes of a graph in words."""

    def value(own):
        if isinstance(own, fx.Node):
            return {"node": own.name}
        return [value(one) for one in own] if isinstance(own, (tuple, list)) else own

    return [
        {
            "name": node.name,
            "op": node.op,
            "target": node.target if isinstance(node.target, str) else node.target.__name__,
            "args": [value(own) for own in node.args],
            "kwargs": {name: value(own) for name, own in node.kwargs.items()},
        }
        for node in graph.nodes
    ]


def main():
    X, target, classes = (torch.as_tensor(part) for part in torch_like.table(40))
    new = torch.as_tensor(torch_like.table(46)[0][40:])
    found = []
    for likelihood, outputs, y in (("regression", 1, target[:, None]), ("classification", 3, classes)):
        for subset in ("all", "last_layer"):
            for structure in ("full", "kron", "diag"):
                model = real(torch_like.dense(outputs)).eval()
                options = {"sigma_noise": 0.3} if likelihood == "regression" else {}
                la = Laplace(model, likelihood, subset_of_weights=subset, hessian_structure=structure, prior_precision=2.0, **options)
                la.fit(DataLoader(TensorDataset(X, y), batch_size=16))
                case = {"likelihood": likelihood, "subset": subset, "structure": structure}
                case["log_marginal_likelihood"] = float(la.log_marginal_likelihood())
                if likelihood == "regression":
                    mean, variance = la(new)
                    case |= {"mean": mean[:, 0].tolist(), "variance": variance[:, 0, 0].tolist()}
                else:
                    for link in ("probit", "bridge"):
                        case[link] = la(new, link_approx=link).tolist()
                la.optimize_prior_precision(method="marglik")
                case["prior_precision"] = float(la.prior_precision.ravel()[0])
                found.append(case)
    convolutions = real(torch_like.convolutions(3)).eval()
    outputs = convolutions(torch.as_tensor(torch_like.images(4))).tolist()
    residual = Residual(torch_like.Residual(3).parts).eval()
    graph = {"nodes": recorded(fx.symbolic_trace(residual).graph), "outputs": residual(torch.as_tensor(torch_like.images(4))).tolist()}
    text = json.dumps({"laplace": found, "convolutions": outputs, "residual": graph}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
