import { z } from 'zod';
import { lineOf, proseOf } from '../../core/text.ts';

const title = lineOf(255);
const body = proseOf(50_000);

/** Schema of a new blog entry. */
export const newEntry = z.object({ title, body, published: z.boolean().default(false) });

/** Schema of a change to a blog entry; omitted fields keep their value. */
export const entryPatch = z.object({ title, body, published: z.boolean() }).partial();
