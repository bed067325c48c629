from measure import read_adult, show

from fairproj import FairBoostClassifier

X, y, sex, X_test, y_test, sex_test = read_adult()
model = FairBoostClassifier(
    "equalized_odds",
    max_gap=0.05,
    random_state=0,
)
model.fit(X, y, sensitive_features=sex)
predicted = model.predict(X_test)
show(y_test, predicted, sex_test, "equalized_odds")
