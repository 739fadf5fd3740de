import { Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType, OptionalProps } from '@mikro-orm/postgresql';
import type { ChangeKind } from '../change-log/change-log.ts';

/** External URL that receives events. */
@Entity({ tableName: 'webhook' })
export class Webhook {
  [OptionalProps]?: 'pk' | 'isEnabled';

  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  /** Id shown to operators. */
  @Property({ columnType: 'uuid', type: 'string', unique: true })
  webhookId!: string;

  @Property({ type: 'text' })
  url!: string;

  @Property({ columnType: 'text[]' })
  events!: ChangeKind[];

  /** Signing secret, stored in plain text because every message is signed with it. */
  @Property({ type: 'text', hidden: true, lazy: true })
  secret!: string;

  @Property({ type: 'boolean', default: true })
  isEnabled!: boolean;

  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  succeededAt!: Date | null;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  failedAt!: Date | null;
}
