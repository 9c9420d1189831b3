// x
document.documentElement.dataset["theme"] = "x";
