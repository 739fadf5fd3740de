/** Makes the JSON of a webhook event from a change (features/change-log/change-log.ts). */
export type EventSerializer = (event: {
  subject: string | null;
  state: Readonly<Record<string, unknown>> | null;
}) => object;
