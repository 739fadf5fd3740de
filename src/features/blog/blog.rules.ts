import { z } from 'zod';
import { lineOf, proseOf } from '../../core/text.ts';

const title = lineOf(255);
const body = proseOf(50_000);

/** What a new blog entry is made of. */
export const newEntry = z.object({ title, body, published: z.boolean().default(false) });

/** What may be changed of a blog entry; what is absent stays. */
export const entryPatch = z.object({ title, body, published: z.boolean() }).partial();
