/** What webhooks tell of something that has happened, as JSON: made of what the log of changes has of it (features/change-log/change-log.ts). */
export type TellEvent = (event: { subject: string | null; state: Readonly<Record<string, unknown>> | null }) => object;
