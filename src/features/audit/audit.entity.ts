import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ID, ObjectType, registerEnumType } from 'type-graphql';
import { globalId, Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';

export enum AuditActorKind {
  USER = 'user',
  API_KEY = 'api_key',
  OPERATOR = 'operator',
  ANONYMOUS = 'anonymous',
}

export enum AuditSubjectKind {
  USER = 'user',
  PRODUCT = 'product',
  API_KEY = 'api_key',
}

registerEnumType(AuditActorKind, {
  name: 'AuditActorKind',
  description: 'Kind of actor.',
  valuesConfig: {
    USER: { description: 'A user with credentials other than an API key.' },
    API_KEY: { description: 'A program with an API key of a user.' },
    OPERATOR: { description: 'An operator at the command line of the server.' },
    ANONYMOUS: { description: 'A caller without credentials, limited to `ANONYMOUS_SCOPES`.' },
  },
});

registerEnumType(AuditSubjectKind, {
  name: 'AuditSubjectKind',
  description: 'Kind of subject of an action.',
  valuesConfig: {
    USER: { description: 'A user account.' },
    PRODUCT: { description: 'A product.' },
    API_KEY: { description: 'An API key.' },
  },
});

/** GraphQL node type by kind of subject. */
export const NODE_TYPES: Readonly<Record<AuditSubjectKind, string>> = {
  [AuditSubjectKind.USER]: 'User',
  [AuditSubjectKind.PRODUCT]: 'Product',
  [AuditSubjectKind.API_KEY]: 'ApiKey',
};

@ObjectType({ simpleResolvers: true, description: 'The actor of an audited action.' })
class AuditActor {
  @Field(() => AuditActorKind, { description: 'Kind of the actor.' })
  kind!: AuditActorKind;

  @Field(() => String, {
    nullable: true,
    description:
      'Username, for an API key the username of its owner, for an operator the name of the OS user. Null for a caller without credentials.',
  })
  name!: string | null;

  @Field(() => ID, {
    nullable: true,
    description: 'Global id of the user or of the API key; null for other actors.',
  })
  nodeId!: string | null;
}

@ObjectType({
  simpleResolvers: true,
  description: 'The subject of an audited action. It may no longer exist.',
})
class AuditSubject {
  @Field(() => AuditSubjectKind, { description: 'Kind of the subject.' })
  kind!: AuditSubjectKind;

  @Field(() => String, {
    description:
      'Name at the time of the action: the username, or the name of the product or API key.',
  })
  name!: string;

  @Field(() => ID, { description: 'Global id, valid for `node(id:)` while the subject exists.' })
  nodeId!: string;
}

@ObjectType({ simpleResolvers: true, description: 'A change of one field.' })
export class AuditedChange {
  @Field(() => String, { description: 'Name of the field, such as `price` or `scopes`.' })
  field!: string;

  @Field(() => String, { nullable: true, description: 'Previous value; null if there was none.' })
  before!: string | null;

  @Field(() => String, { nullable: true, description: 'New value; null if there is none.' })
  after!: string | null;
}

/**
 * An entry of the audit trail. The database rejects updates, and deletes other than those of
 * `prune` (audit.service.ts).
 */
@Entity({ tableName: 'audit_entry' })
@Index({ properties: ['at', 'pk'] })
@Index({ properties: ['actorName', 'at', 'pk'] })
@Index({ properties: ['action', 'at', 'pk'] })
@Index({
  name: 'audit_entry_subject_at_pk_index',
  properties: ['subjectKind', 'subjectKey', 'at', 'pk'],
})
@ObjectType({
  simpleResolvers: true,
  implements: Node,
  description: 'An audited action on accounts or products.',
})
export class AuditEntry extends Node {
  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'Time of the action.' })
  at!: Date;

  @Property({ type: 'text' })
  actorKind!: AuditActorKind;

  @Property({ type: 'text', nullable: true })
  actorName!: string | null;

  /** Primary key of the user or API key owner. No foreign key, because entries outlive users. */
  @Property({ type: new BigIntType('number'), nullable: true })
  actorPk!: number | null;

  /** The `keyId` of the API key. */
  @Property({ columnType: 'uuid', type: 'string', nullable: true })
  apiKey!: string | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, {
    nullable: true,
    description: 'Id of the request, as in its response and in the log; null for a command.',
  })
  requestId!: string | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, {
    nullable: true,
    description:
      'Client network: an IPv4 address, or the /64 of an IPv6 address; null for a command.',
  })
  network!: string | null;

  @Property({ type: 'text' })
  @Field(() => String, {
    description: 'The action, such as `product.changed` (complete list: docs/operations.md).',
  })
  action!: string;

  @Property({ type: 'text', nullable: true })
  subjectKind!: AuditSubjectKind | null;

  /** Primary key, or the `keyId` of an API key. */
  @Property({ type: 'text', nullable: true })
  subjectKey!: string | null;

  @Property({ type: 'text', nullable: true })
  subjectName!: string | null;

  @Property({ columnType: 'jsonb', type: 'json' })
  @Field(() => [AuditedChange], { description: 'The changed fields.' })
  changes!: readonly AuditedChange[];

  @Field(() => AuditActor, { description: 'Actor of the action.' })
  get actor(): AuditActor {
    const { actorKind: kind, actorName: name, actorPk, apiKey } = this;
    const owner = actorPk === null ? null : globalId('User', actorPk);
    return { kind, name, nodeId: apiKey === null ? owner : globalId('ApiKey', apiKey) };
  }

  @Field(() => AuditSubject, {
    nullable: true,
    description: 'Subject of the action; null for many subjects, or for the audit trail itself.',
  })
  get subject(): AuditSubject | null {
    const { subjectKind: kind, subjectKey: key, subjectName: name } = this;
    return kind === null || key === null || name === null
      ? null
      : { kind, name, nodeId: globalId(NODE_TYPES[kind], key) };
  }

  protected get nodeKey(): number {
    return this.pk;
  }
}
