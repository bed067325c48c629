from aif360.algorithms.preprocessing import Reweighing
from aif360.datasets import BinaryLabelDataset
from measure import read_adult, show
from sklearn.ensemble import HistGradientBoostingClassifier

X, y, sex, X_test, y_test, sex_test = read_adult()
data = BinaryLabelDataset(
    df=X.fillna(-1).assign(sex=sex, income=y),
    label_names=["income"],
    protected_attribute_names=["sex"],
)
weigher = Reweighing(
    unprivileged_groups=[{"sex": 0}],
    privileged_groups=[{"sex": 1}],
)
weights = weigher.fit_transform(data).instance_weights
model = HistGradientBoostingClassifier(random_state=0)
model.fit(X, y, sample_weight=weights)
predicted = model.predict(X_test)
show(y_test, predicted, sex_test, "demographic_parity")
