import { useSearchParams } from 'react-router';
import { DEFAULT_ORDERING, type Ordering, orderingNamed } from './ordering.ts';

interface CatalogueAddress {
  search: string;
  ordering: Ordering;
  setSearch: (search: string) => void;
  setOrdering: (name: string) => void;
}

/** Search and order of the catalogue, in the address, for bookmarks, links and Back. */
export function useCatalogueAddress(): CatalogueAddress {
  const [params, setParams] = useSearchParams();

  const change = (name: string, value: string) =>
    setParams(
      (current) => {
        const next = new URLSearchParams(current);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true, preventScrollReset: true },
    );

  return {
    search: params.get('q')?.trim() ?? '',
    ordering: orderingNamed(params.get('sort')),
    setSearch: (search) => change('q', search.trim()),
    setOrdering: (name) => change('sort', name === DEFAULT_ORDERING.name ? '' : name),
  };
}
