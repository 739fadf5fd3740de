import { useId, useRef } from 'react';

interface ConfirmButtonProps {
  /** Text of the button, also in the dialog. */
  label: string;
  question: string;
  /** Text of the button that cancels. */
  cancelLabel?: string;
  onConfirm: () => void;
}

/** A button with a confirmation dialog, for actions that cannot be undone. */
export function ConfirmButton({
  label,
  question,
  cancelLabel = 'Keep it',
  onConfirm,
}: ConfirmButtonProps) {
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
            <button type="submit">{cancelLabel}</button>
            <button type="submit" value="yes" className="danger">
              {label}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
