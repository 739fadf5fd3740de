import type { ProductOrder } from '../gql/graphql.ts';

/** A way to order the catalogue, as the address of the page names it. */
export interface Ordering {
  name: string;
  label: string;
  order: ProductOrder;
}

/** The one that is taken where none is named. */
export const DEFAULT_ORDERING: Ordering = {
  name: 'name',
  label: 'Name, A to Z',
  order: { field: 'NAME', direction: 'ASC' },
};

/** All of them. */
export const ORDERINGS: readonly Ordering[] = [
  DEFAULT_ORDERING,
  { name: 'name-desc', label: 'Name, Z to A', order: { field: 'NAME', direction: 'DESC' } },
  { name: 'price', label: 'Price, lowest first', order: { field: 'PRICE', direction: 'ASC' } },
  {
    name: 'price-desc',
    label: 'Price, highest first',
    order: { field: 'PRICE', direction: 'DESC' },
  },
  { name: 'newest', label: 'Newest first', order: { field: 'CREATED_AT', direction: 'DESC' } },
  { name: 'oldest', label: 'Oldest first', order: { field: 'CREATED_AT', direction: 'ASC' } },
];

/** The ordering of this name, or the default. */
export function orderingNamed(name: string | null): Ordering {
  return ORDERINGS.find((ordering) => ordering.name === name) ?? DEFAULT_ORDERING;
}
