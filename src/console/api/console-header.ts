// Header of the playground's calls to /v1, which no other site can send along.
export const consoleHeader = "x-tollgate-console";
