// Whose conversations are shown.
import { computed } from "@preact/signals";
import { account } from "../../session.ts";

/** Null while nobody is signed in. Ids alone may begin again on a new server at the same address. */
export const owner = computed(() => (account.value === null ? null : `${account.value.id} ${account.value.email}`));
