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
    ENDED: {
      description:
        'The session was ended by a logout, from another session, by a new password, or by an operator.',
    },
    EXPIRED: {
      description: 'The session reached its idle lifetime or its maximum lifetime.',
    },
    DISABLED: { description: 'The user was disabled.' },
  },
});

@ObjectType({ simpleResolvers: true, description: 'The end of a session.' })
export class SessionEnd {
  @Field(() => ID, { description: 'The id of the session, as `sessions` lists it.' })
  sessionId!: string;

  @Field(() => SessionEndReason, { description: 'Why the session has ended.' })
  reason!: SessionEndReason;

  @Field(() => DateTimeScalar, { description: 'When the end was detected, within a second.' })
  at!: Date;
}
