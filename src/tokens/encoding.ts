// The encoding that Tollgate counts with itself. Apart from the tables, which only the Worker may load.

/** As the tiktoken package calls it. */
export const encodingName = "o200k_base";
