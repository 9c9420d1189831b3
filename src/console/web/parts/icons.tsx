// The icons, drawn inline: they take the text's color and need no request.
import type { VNode } from "preact";

const paths = {
  overview: "M3 12l9-8 9 8M5.5 10v9.5h13V10M10 19.5v-5h4v5",
  playground: "M4 5h16v11H9l-5 4V5zM8 9h8M8 12.5h5",
  key: "M14.5 9.5a4.5 4.5 0 1 0-4.2 4.5L12 12.3h2v-2l.3-.3M7.8 9.2h.01M13 13.5l6.5 6.5M17 17.5l2-2",
  usage: "M4 20V10M10 20V4M16 20v-7M4 20h17",
  batches: "M4 8.5h13V20H4zM7.5 8.5V4.5H20V16h-3M7.5 12.5h6M7.5 16h6",
  plan: "M12 3l8 4.5-8 4.5-8-4.5L12 3zM4 12l8 4.5 8-4.5M4 16.2l8 4.5 8-4.5",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20a7.5 7.5 0 0 1 15 0",
  accounts:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.2a6.5 6.5 0 0 1 3.5 5.8",
  requests: "M4 13l2.5-8h11L20 13v6H4v-6zM4 13h4.5l1.5 2.5h4l1.5-2.5H20",
  nodes: "M4 4.5h16v6H4zM4 13.5h16v6H4zM7.5 7.5h.01M7.5 16.5h.01M11 7.5h5.5M11 16.5h5.5",
  line: "M4 6h3v3H4zM10.5 6h3v3h-3zM17 6h3v3h-3zM4 15h16M16.5 11.5L20 15l-3.5 3.5",
  models: "M12 3l7.8 4.5v9L12 21l-7.8-4.5v-9L12 3zM12 12l7.8-4.5M12 12v9M12 12L4.2 7.5",
  totals: "M4 19h16M5 15l4.5-5 4 3.5L20 6M15.5 6H20v4.5",
  activity: "M3 12.5h4l3-8 4.5 15 3-7H21",
  log: "M4 5h16M4 10h16M4 15h9M4 20h6M16 14.5v6M13 17.5h6",
  audit: "M6 3h9l4 4v14H6V3zM14.5 3v4.5H19M9.5 12h6M9.5 16h6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M8.5 8.5h11v11h-11zM5.5 15.5h-1v-11h11v1",
  check: "M5 12.5l4.5 4.5L19 7.5",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  plus: "M12 5v14M5 12h14",
  trash: "M4.5 7h15M9.5 7V4.5h5V7M6.5 7l1 12.5h9l1-12.5",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.5v2M12 19.5v2M4.2 4.2l1.5 1.5M18.3 18.3l1.5 1.5M2.5 12h2M19.5 12h2M4.2 19.8l1.5-1.5M18.3 5.7l1.5-1.5",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  system: "M3.5 5h17v11h-17zM9 20h6M12 16v4",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20.5 20.5",
  clip: "M20 11.5l-8.2 8.2a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.7-7.7",
  image: "M4 5h16v14H4zM8.5 10.5a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4zM4.5 17.5l5-5 3.5 3.5 2.5-2.5 4 4",
  code: "M8.5 7.5L4 12l4.5 4.5M15.5 7.5L20 12l-4.5 4.5M13.5 5l-3 14",
  chevron: "M9 6l6 6-6 6",
  pencil: "M4 20l1-4.5L16.5 4 20 7.5 8.5 19 4 20zM14 6.5l3.5 3.5",
  more: "M5.3 12h1M11.5 12h1M17.7 12h1",
  history: "M4 5h16v14H4zM9.5 5v14M6.5 8.5h.01M6.5 11.5h.01",
  columns: "M4 5h16v14H4zM12 5v14",
  pin: "M9 4h6l-.8 6 3.3 3.5H6.5L9.8 10 9 4zM12 13.5V20",
  upload: "M12 15V4M7 8.5l5-5 5 5M5 20h14",
  save: "M6 4h12v16l-6-4.5L6 20V4z",
  back: "M15 6l-6 6 6 6",
  warning: "M12 4l9 16H3L12 4zM12 10v4.5M12 17.3h.01",
  settings:
    "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  external: "M14 4.5h5.5V10M19.5 4.5L11 13M17 13.5v6H4.5V7h6",
  leave: "M14 4.5H5v15h9M10 12h10M16.5 8.5L20 12l-3.5 3.5",
  refresh: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3M19.5 3.5v4h-4",
  bolt: "M13 3L5 13.5h6L10.5 21 19 10h-6.2L13 3z",
} as const;

export type IconName = keyof typeof paths;

export const Icon = ({ name, size = 18 }: { name: IconName; size?: number }): VNode => (
  <svg
    class="icon"
    width={size}
    height={size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.7"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={paths[name]} />
  </svg>
);

export const Mark = ({ size = 26 }: { size?: number }): VNode => (
  <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" class="mark" />
    <path
      d="M8 24V12a8 8 0 0 1 16 0v12M13.5 24V13a2.5 2.5 0 0 1 5 0v11"
      fill="none"
      stroke="#fff"
      stroke-width="2.6"
      stroke-linecap="round"
    />
  </svg>
);
