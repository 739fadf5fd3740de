import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Registration token sent by mail, until a token of its address is used or it expires. */
@Entity({ tableName: 'registration' })
@Check({ name: 'registration_token_hash_check', expression: `octet_length(token_hash) = 32` })
@Index({ name: 'registration_email_index', properties: ['email'] })
@Index({ name: 'registration_expires_at_index', properties: ['expiresAt'] })
export class Registration {
  /** SHA-256 of the token. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  tokenHash!: Buffer;

  /** In lower case. */
  @Property({ type: 'text' })
  email!: string;

  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
