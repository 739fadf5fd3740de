import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Pending registration, one per email address, until its token is used or expires. */
@Entity({ tableName: 'registration' })
@Check({ name: 'registration_token_hash_check', expression: `octet_length(token_hash) = 32` })
@Index({ name: 'registration_expires_at_index', properties: ['expiresAt'] })
export class Registration {
  /** In lower case. */
  @PrimaryKey({ type: 'text' })
  email!: string;

  /** SHA-256 of the token. */
  @Property({ columnType: 'bytea', type: 'Buffer', unique: true })
  tokenHash!: Buffer;

  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
