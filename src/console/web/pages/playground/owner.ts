// The account whose conversations are shown.
import { computed } from "@preact/signals";
import { account } from "../../session.ts";

/** Null: not signed in. With the e-mail address, because a new server at the same address reuses ids. */
export const owner = computed(() => (account.value === null ? null : `${account.value.id} ${account.value.email}`));
