import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Registration token sent by mail, until a token of its address is used or it expires. */
@Entity({ tableName: 'registration' })
export class Registration {
  /** SHA-256 of the token. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  tokenHash!: Buffer;

  /** In lower case. */
  @Index()
  @Property({ type: 'text' })
  email!: string;

  @Index()
  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
