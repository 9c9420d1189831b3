// Text that PostgreSQL compares byte by byte, whatever the database's own order of letters is: ids are looked for by their
// beginnings, and their order is the same everywhere.
import { customType } from "drizzle-orm/pg-core";

export const exactText = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });
