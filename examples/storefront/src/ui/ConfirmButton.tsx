import { useId, useRef } from 'react';

interface ConfirmButtonProps {
  /** What the button says, here and in the question. */
  label: string;
  question: string;
  /** What the other answer is called. */
  keep?: string;
  onConfirm: () => void;
}

/** A button that asks before it does what cannot be undone. */
export function ConfirmButton({ label, question, keep = 'Keep it', onConfirm }: ConfirmButtonProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const questionId = useId();
  return (
    <>
      <button type="button" className="danger" onClick={() => dialog.current?.showModal()}>
        {label}
      </button>
      <dialog
        ref={dialog}
        aria-labelledby={questionId}
        onClose={({ currentTarget }) => {
          if (currentTarget.returnValue === 'yes') onConfirm();
          currentTarget.returnValue = '';
        }}
      >
        <form method="dialog">
          <p id={questionId}>{question}</p>
          <div className="actions">
            <button type="submit">{keep}</button>
            <button type="submit" value="yes" className="danger">
              {label}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
