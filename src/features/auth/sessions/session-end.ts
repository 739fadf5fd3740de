import { Field, ID, ObjectType, registerEnumType } from 'type-graphql';
import { DateTimeScalar } from '../../../api/scalars.ts';

export enum SessionEndReason {
  ENDED = 'ENDED',
  EXPIRED = 'EXPIRED',
  DISABLED = 'DISABLED',
}

registerEnumType(SessionEndReason, {
  name: 'SessionEndReason',
  description: 'Why a session has ended.',
  valuesConfig: {
    ENDED: { description: 'Somebody has ended it: by a logout, from another session, by a new password, or an operator.' },
    EXPIRED: { description: 'It was not used for long enough, or was open for as long as one may be.' },
    DISABLED: { description: 'Its user may no longer sign in.' },
  },
});

@ObjectType({ simpleResolvers: true, description: 'The end of a session.' })
export class SessionEnd {
  @Field(() => ID, { description: 'The id of the session, as `sessions` lists it.' })
  sessionId!: string;

  @Field(() => SessionEndReason, { description: 'Why it has ended.' })
  reason!: SessionEndReason;

  @Field(() => DateTimeScalar, { description: 'When that was noticed, within a second.' })
  at!: Date;
}
