from error_parity import RelaxedThresholdOptimizer
from lightgbm import LGBMClassifier
from measure import read_adult, show
from sklearn.model_selection import train_test_split

X, y, sex, X_test, y_test, sex_test = read_adult()
X_fit, X_set, y_fit, y_set, _, sex_set = train_test_split(X, y, sex, random_state=0)
scores = LGBMClassifier(verbosity=-1).fit(X_fit, y_fit)
model = RelaxedThresholdOptimizer(
    predictor=lambda X: scores.predict_proba(X)[:, 1],
    constraint="equalized_odds",
    tolerance=0.05,
    seed=0,
)
model.fit(X_set, y_set.to_numpy(), group=sex_set.to_numpy())
predicted = model.predict(X_test, group=sex_test.to_numpy())
show(y_test, predicted, sex_test, "equalized_odds")
