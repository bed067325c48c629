from fairlearn.reductions import (
    ExponentiatedGradient,
    TruePositiveRateParity,
)
from lightgbm import LGBMClassifier
from measure import read_adult, show

X, y, sex, X_test, y_test, sex_test = read_adult()
model = ExponentiatedGradient(
    LGBMClassifier(verbosity=-1),
    TruePositiveRateParity(difference_bound=0.025),
    max_iter=10,
)
model.fit(X, y, sensitive_features=sex)
predicted = model.predict(X_test, random_state=0)
show(y_test, predicted, sex_test, "equal_opportunity")
