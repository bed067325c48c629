"""Train on a Dask cluster; here it is two processes of this machine. Needs fairproj[distributed].

python examples/cluster.py
"""

import tempfile
from pathlib import Path

import dask.dataframe as dd
from dask.distributed import Client, LocalCluster

from fairproj import FairBoostClassifier, load
from fairproj.datasets import load_adult
from fairproj.distributed import DaskFairBoostClassifier


def main(client: Client, folder: Path) -> None:
    """Train on two workers, compare with one process, and predict with and without the cluster."""
    data = load_adult()
    frame = dd.from_pandas(data.frame, npartitions=8)
    features = frame[list(data.data.columns)]
    model = DaskFairBoostClassifier(
        "equal_opportunity",
        max_gap=0.05,
        n_estimators=50,
        random_state=0,
        client=client,
        checkpoint_path=folder / "adult.checkpoint",
    )
    model.fit(features, frame["income"], sensitive_features=frame["sex"])
    print(f"gap {model.certificate_.gap:.3f} on the {model.certificate_.watched_on}")

    alone = FairBoostClassifier(
        "equal_opportunity", max_gap=0.05, engine="xgboost", n_estimators=50, random_state=0
    )
    alone.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    print(f"logarithm of the training loss: {model.history_[-1].log_loss:.9f} on the cluster,")
    print(f"{alone.history_[-1].log_loss:.9f} in one process")

    predicted = model.predict(features)  # lazy: nothing is computed yet
    print(f"{(predicted == frame['income']).mean().compute():.3f} of the rows are predicted right")

    model.save(folder / "adult.fairproj")  # an ordinary model file: no cluster from here on
    print(load(folder / "adult.fairproj").predict(data.data.head(3)))


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as connected,
    ):
        main(connected, Path(name))
