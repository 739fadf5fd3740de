import { type SyntheticEvent, useEffect, useEffectEvent, useState } from 'react';
import { type Ordering, ORDERINGS } from './ordering.ts';

interface CatalogueControlsProps {
  search: string;
  ordering: Ordering;
  onSearch: (search: string) => void;
  onOrdering: (name: string) => void;
}

const PAUSE_MS = 250;

/** Search and order of the catalogue. */
export function CatalogueControls({
  search,
  ordering,
  onSearch,
  onOrdering,
}: CatalogueControlsProps) {
  const [text, setText] = useSearchText(search, onSearch);

  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    onSearch(text);
  };

  return (
    <search>
      <form className="catalogue-controls" onSubmit={submit}>
        <label className="catalogue-search">
          <span>Search</span>
          <input
            type="search"
            value={text}
            placeholder="Words of a name, or a barcode"
            enterKeyHint="search"
            onChange={({ target }) => setText(target.value)}
          />
        </label>
        <label>
          <span>Sort by</span>
          <select value={ordering.name} onChange={({ target }) => onOrdering(target.value)}>
            {ORDERINGS.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
      </form>
    </search>
  );
}

/** The typed text. Searches after a pause. Another search, such as by Back, replaces the text. */
function useSearchText(
  search: string,
  onSearch: (search: string) => void,
): [string, (text: string) => void] {
  const [text, setText] = useState(search);
  const [previous, setPrevious] = useState(search);
  const [sent, setSent] = useState(search);

  if (search !== previous) {
    setPrevious(search);
    if (search !== sent) setText(search);
    setSent(search);
  }

  const send = useEffectEvent(() => {
    setSent(text.trim());
    onSearch(text);
  });

  useEffect(() => {
    if (text.trim() === search) return undefined;
    const timer = setTimeout(() => send(), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, search]);

  return [text, setText];
}
