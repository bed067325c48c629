from fairgbm import FairGBMClassifier
from measure import read_adult, show

X, y, sex, X_test, y_test, sex_test = read_adult()
model = FairGBMClassifier(
    constraint_type="FNR",
    multiplier_learning_rate=0.1,
    random_state=0,
    verbosity=-1,
)
model.fit(X, y, constraint_group=sex)
predicted = model.predict(X_test)
show(y_test, predicted, sex_test, "equal_opportunity")
