import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
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
  description: 'Who can do something.',
  valuesConfig: {
    USER: { description: 'A user, by whatever credentials but an API key.' },
    API_KEY: { description: 'A machine, with an API key of a user.' },
    OPERATOR: { description: 'Somebody at the command line of the server.' },
    ANONYMOUS: { description: 'A caller without credentials, as far as `ANONYMOUS_SCOPES` allows.' },
  },
});

registerEnumType(AuditSubjectKind, {
  name: 'AuditSubjectKind',
  description: 'What something can be done to.',
  valuesConfig: {
    USER: { description: 'An account.' },
    PRODUCT: { description: 'A product.' },
    API_KEY: { description: 'An API key.' },
  },
});

/** The types of the schema that subjects are nodes of. */
export const NODE_TYPES: Readonly<Record<AuditSubjectKind, string>> = {
  [AuditSubjectKind.USER]: 'User',
  [AuditSubjectKind.PRODUCT]: 'Product',
  [AuditSubjectKind.API_KEY]: 'ApiKey',
};

@ObjectType({ simpleResolvers: true, description: 'Who has done something.' })
class AuditActor {
  @Field(() => AuditActorKind, { description: 'What it was that did it.' })
  kind!: AuditActorKind;

  @Field(() => String, {
    nullable: true,
    description:
      'The username; of an API key that of its owner; of the operator the name at the operating system. Null for a caller without credentials.',
  })
  name!: string | null;

  @Field(() => ID, { nullable: true, description: 'The global id of the user, or of the API key; null for all others.' })
  nodeId!: string | null;
}

@ObjectType({ simpleResolvers: true, description: 'What something was done to, which may be gone since.' })
class AuditSubject {
  @Field(() => AuditSubjectKind, { description: 'What it is.' })
  kind!: AuditSubjectKind;

  @Field(() => String, { description: 'What it was called then: the username, or the name of the product or the API key.' })
  name!: string;

  @Field(() => ID, { description: 'Its global id, good for `node(id:)` while it is there.' })
  nodeId!: string;
}

@ObjectType({ simpleResolvers: true, description: 'A fact that came, changed or went.' })
export class AuditedChange {
  @Field(() => String, { description: 'What it is about, such as `price` or `scopes`.' })
  field!: string;

  @Field(() => String, { nullable: true, description: 'What it was; null where there was none.' })
  before!: string | null;

  @Field(() => String, { nullable: true, description: 'What it is from then on; null where there is none.' })
  after!: string | null;
}

/** One entry of the audit trail. The database refuses to change it, and to delete it but by `prune` (audit.service.ts). */
@Entity({ tableName: 'audit_entry' })
@Check({ name: 'audit_entry_action_check', expression: `action ~ '^[a-z_]+\\.[a-z_]+$'` })
@Check({ name: 'audit_entry_actor_kind_check', expression: `actor_kind ~ '^(user|api_key|operator|anonymous)$'` })
@Check({ name: 'audit_entry_actor_name_check', expression: `(actor_name is null) = (actor_kind = 'anonymous')` })
@Check({ name: 'audit_entry_subject_kind_check', expression: `subject_kind ~ '^(user|product|api_key)$'` })
@Check({ name: 'audit_entry_subject_key_check', expression: `(subject_key is null) = (subject_kind is null)` })
@Check({ name: 'audit_entry_subject_name_check', expression: `(subject_name is null) = (subject_kind is null)` })
@Index({ name: 'audit_entry_at_pk_index', properties: ['at', 'pk'] })
@Index({ name: 'audit_entry_actor_name_at_pk_index', properties: ['actorName', 'at', 'pk'] })
@Index({ name: 'audit_entry_action_at_pk_index', properties: ['action', 'at', 'pk'] })
@Index({ name: 'audit_entry_subject_at_pk_index', properties: ['subjectKind', 'subjectKey', 'at', 'pk'] })
@ObjectType({ simpleResolvers: true, implements: Node, description: 'Something that was done to accounts or products.' })
export class AuditEntry extends Node {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When.' })
  at!: Date;

  @Property({ type: 'text' })
  actorKind!: AuditActorKind;

  @Property({ type: 'text', nullable: true })
  actorName!: string | null;

  /** The user's primary key, also of an API key's owner. No foreign key: entries outlive users. */
  @Property({ type: 'integer', nullable: true })
  actorPk!: number | null;

  /** The `kid` of the API key. */
  @Property({ columnType: 'uuid', type: 'string', nullable: true })
  apiKey!: string | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, { nullable: true, description: 'The id of the request, as its answer and the log have it; null for a command.' })
  requestId!: string | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, {
    nullable: true,
    description: 'From where: an IPv4 address, or the /64 of an IPv6 address; null for a command.',
  })
  network!: string | null;

  @Property({ type: 'text' })
  @Field(() => String, { description: 'What was done, such as `product.changed` (docs/audit.md has them all).' })
  action!: string;

  @Property({ type: 'text', nullable: true })
  subjectKind!: AuditSubjectKind | null;

  /** What tells it from others of its kind: a primary key, or a `kid`. */
  @Property({ type: 'text', nullable: true })
  subjectKey!: string | null;

  @Property({ type: 'text', nullable: true })
  subjectName!: string | null;

  @Property({ columnType: 'jsonb', type: 'json' })
  @Field(() => [AuditedChange], { description: 'The facts that it changed.' })
  changes!: readonly AuditedChange[];

  @Field(() => AuditActor, { description: 'Who did it.' })
  get actor(): AuditActor {
    const { actorKind: kind, actorName: name, actorPk, apiKey } = this;
    const owner = actorPk === null ? null : globalId('User', actorPk);
    return { kind, name, nodeId: apiKey === null ? owner : globalId('ApiKey', apiKey) };
  }

  @Field(() => AuditSubject, { nullable: true, description: 'What it was done to; null where that is many, or the trail itself.' })
  get subject(): AuditSubject | null {
    const { subjectKind: kind, subjectKey: key, subjectName: name } = this;
    return kind === null || key === null || name === null ? null : { kind, name, nodeId: globalId(NODE_TYPES[kind], key) };
  }

  protected get nodeKey(): string {
    return this.pk;
  }
}
