import { useState } from 'react';
import { problemOf } from '../apollo/problem.ts';
import { useViewer } from '../session/viewer.ts';
import { useAddItem } from './useAddItem.ts';

/** Puts something among the items of whoever is signed in, under its name. */
export function KeepButton({ name }: { name: string }) {
  const viewer = useViewer();
  return viewer && <Keep key={name} name={name} userId={viewer.id} />;
}

function Keep({ name, userId }: { name: string; userId: string }) {
  const addItem = useAddItem(userId);
  const [outcome, setOutcome] = useState('');

  const keep = () =>
    addItem(name).then(
      () => setOutcome('It is among your items now.'),
      (error: unknown) => setOutcome(problemOf(error).message),
    );

  return (
    <div className="keep">
      <button type="button" className="primary" onClick={() => void keep()}>
        Add to my items
      </button>
      <p role="status">{outcome}</p>
    </div>
  );
}
