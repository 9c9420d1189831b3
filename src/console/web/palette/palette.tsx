// The command palette: finds a page, command, model, key, node, conversation or account by a few letters.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { Modal } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { fit } from "./fuzzy.ts";
import { accountItems, fetchedItems, type Item, type ItemGroup, ownItems, rememberedAccount } from "./items.ts";
import { recentIds, remember } from "./recent.ts";
import { t } from "../texts.ts";

/** The server is asked for accounts this long after the last key press. */
const askAfterMs = 200;
const askMinLength = 2;
/** At most this many matches are listed, the best ones. */
const shownMax = 40;
/** Bonus for recent choices; the newest gets the most. */
const recentScore = 6;
/** A match in the other words ranks below a match in the name. */
const otherWordsScore = 1;
/** Scattered letters match many long names, so matches below this share of the best score are left out. */
const enoughOfBest = 0.4;
/** What an empty field lists: the groups that are never long. */
const listedGroups: readonly ItemGroup[] = ["commands", "pages", "docs"];

type Found = Readonly<{ item: Item; at: readonly number[] }>;

export function Palette({ onClose }: { onClose: () => void }): VNode {
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useFound(query.trim());
  const id = useId();
  const at = Math.min(chosen, found.length - 1);
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const run = ({ item }: Found): void => {
    remember(item.id);
    onClose();
    // Later, because the closing dialog restores the focus, and the page that the item leads to must get it.
    setTimeout(item.run);
  };
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: Math.min(at + 8, found.length - 1),
    PageUp: Math.max(at - 8, 0),
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const next = steps[event.key];
    const present = found[at];
    if (next !== undefined && found.length > 0) setChosen((next + found.length) % found.length);
    else if (event.key === "Enter" && present !== undefined) run(present);
    else return;
    event.preventDefault();
  };
  return (
    <Modal class="palette" aria-label={t("palette.go_to")} onClose={onClose}>
      <div class="palette-search">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label={t("palette.label")}
          aria-expanded={found.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={found.length > 0 ? `${id}-${at}` : undefined}
          placeholder={t("palette.placeholder")}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          enterKeyHint="go"
          autofocus
          value={query}
          onInput={(event) => {
            setQuery(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {found.length === 0 && <p class="palette-none">{t("palette.none")}</p>}
      <FoundList id={id} found={found} at={at} onPoint={setChosen} onRun={run} />
      <p class="for-readers" role="status">
        {found.length === 0 ? t("palette.none") : t("palette.found", { found: found.length })}
      </p>
    </Modal>
  );
}

type FoundListProps = Readonly<{
  /** Begins the ids of its elements. */
  id: string;
  found: readonly Found[];
  /** The one that Enter runs. */
  at: number;
  onPoint: (at: number) => void;
  onRun: (found: Found) => void;
}>;

const FoundList = ({ id, found, at, onPoint, onRun }: FoundListProps): VNode => (
  <div
    id={`${id}-list`}
    class="palette-list"
    role="listbox"
    aria-label={t("palette.results")}
    hidden={found.length === 0}
  >
    {groupsOf(found).map(({ name, from, of }) => (
      <div key={name} role="group" aria-label={t(`palette.group_${name}`)}>
        <h3 aria-hidden="true">{t(`palette.group_${name}`)}</h3>
        {of.map((each, index) => (
          <div
            key={each.item.id}
            id={`${id}-${from + index}`}
            role="option"
            aria-selected={from + index === at}
            onPointerMove={() => onPoint(from + index)}
            onClick={() => onRun(each)}
          >
            <Icon name={each.item.icon} size={17} />
            <span class="palette-name">{marked(each)}</span>
            <span class="palette-about">{each.item.about}</span>
          </div>
        ))}
      </div>
    ))}
  </div>
);

function useFound(query: string): readonly Found[] {
  const fetched = useFetched();
  const accounts = useAccounts(query);
  const own = useMemo(ownItems, []);
  const recent = useMemo(recentIds, []);
  return useMemo(() => find(query, [...own, ...fetched, ...accounts], recent), [query, own, fetched, accounts]);
}

function useFetched(): readonly Item[] {
  const [items, setItems] = useState<readonly Item[]>([]);
  useEffect(() => {
    let gone = false;
    for (const fetchItems of fetchedItems) {
      void fetchItems().then(
        (more) => !gone && setItems((before) => [...before, ...more]),
        () => {},
      );
    }
    return () => {
      gone = true;
    };
  }, []);
  return items;
}

function useAccounts(query: string): readonly Item[] {
  const [items, setItems] = useState<readonly Item[]>([]);
  useEffect(() => {
    if (query.length < askMinLength) {
      setItems([]);
      return undefined;
    }
    let gone = false;
    const timer = setTimeout(() => {
      void accountItems(query).then(
        (found) => !gone && setItems(found),
        () => {},
      );
    }, askAfterMs);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [query]);
  return items;
}

/** In display order: items stay in their groups, and the group with the best match comes first. */
function find(query: string, items: readonly Item[], recent: readonly string[]): readonly Found[] {
  if (query === "") {
    const lately = recent.flatMap((id) => {
      const item = items.find((each) => each.id === id) ?? rememberedAccount(id);
      return item === null ? [] : [{ item: { ...item, group: "recent" as const }, at: [] }];
    });
    const ids = new Set(lately.map(({ item }) => item.id));
    const rest = items.filter(({ id, group }) => listedGroups.includes(group) && !ids.has(id));
    return [...lately, ...rest.map((item) => ({ item, at: [] }))];
  }
  const fits = items.flatMap((item) => {
    const byName = fit(query, item.name);
    if (byName === null && !hasWords(query, item)) return [];
    const place = recent.indexOf(item.id);
    const bonus = place === -1 ? 0 : recentScore - place;
    return [{ item, at: byName?.at ?? [], score: (byName?.score ?? otherWordsScore) + bonus }];
  });
  fits.sort((a, b) => b.score - a.score);
  const enough = (fits[0]?.score ?? 0) * enoughOfBest;
  const best = fits.filter(({ at, score }) => score >= enough || at.length === 0).slice(0, shownMax);
  const order = [...new Set(best.map(({ item }) => item.group))];
  return order.flatMap((group) => best.filter(({ item }) => item.group === group));
}

/** Whether every word of the query begins one of the item's other words. */
function hasWords(query: string, { name, group, words = "" }: Item): boolean {
  const others = `${name} ${t(`palette.group_${group}`)} ${words}`.toLowerCase().split(" ");
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => others.some((other) => other.startsWith(word)));
}

type Group = { readonly name: ItemGroup; readonly from: number; readonly of: Found[] };

function groupsOf(found: readonly Found[]): readonly Group[] {
  const groups: Group[] = [];
  for (const [index, each] of found.entries()) {
    const last = groups.at(-1);
    if (last?.name === each.item.group) last.of.push(each);
    else groups.push({ name: each.item.group, from: index, of: [each] });
  }
  return groups;
}

/** The name with its matching letters in bold. */
function marked({ item: { name }, at }: Found): ComponentChildren {
  if (at.length === 0) return name;
  const marks = new Set(at);
  const parts: ComponentChildren[] = [];
  for (let index = 0; index < name.length;) {
    const isMarked = marks.has(index);
    let end = index + 1;
    while (end < name.length && marks.has(end) === isMarked) end++;
    const part = name.slice(index, end);
    parts.push(isMarked ? <b key={index}>{part}</b> : part);
    index = end;
  }
  return parts;
}
