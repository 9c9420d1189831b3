// The guide's chapters for the palette. A copy of their titles, which a test compares: the texts stay on the server.

export const chapters: readonly (readonly [id: string, title: string])[] = [
  ["start", "Start"],
  ["team", "Ten minutes from GPU box to team"],
  ["clients", "Clients"],
  ["nodes", "Your own nodes"],
  ["accounts", "Accounts and balance"],
  ["tools", "Search and tools"],
  ["operations", "Operations"],
  ["cluster", "More than one machine"],
  ["configuration", "Configuration"],
];
