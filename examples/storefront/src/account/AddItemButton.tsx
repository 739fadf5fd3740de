import { useState } from 'react';
import { problemOf } from '../apollo/problem.ts';
import { useViewer } from '../session/viewer.ts';
import { useAddItem } from './useAddItem.ts';

/** Adds an item with this name to the items of the viewer. */
export function AddItemButton({ name }: { name: string }) {
  const viewer = useViewer();
  return viewer && <AddItem key={name} name={name} userId={viewer.id} />;
}

function AddItem({ name, userId }: { name: string; userId: string }) {
  const addItem = useAddItem(userId);
  const [outcome, setOutcome] = useState('');

  const add = () =>
    addItem(name).then(
      () => setOutcome('Added to your items.'),
      (error: unknown) => setOutcome(problemOf(error).message),
    );

  return (
    <div className="add-item">
      <button type="button" className="primary" onClick={() => void add()}>
        Add to my items
      </button>
      <p role="status">{outcome}</p>
    </div>
  );
}
