// The header that lets a signed-in browser call /v1 without a key. A copy of the contract's constant: importing that
// would bring every schema into the browser. A test compares the two.

export const consoleHeader = "x-tollgate-console";
