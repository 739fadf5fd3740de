import { Check, Entity, Index, ManyToOne, Property } from '@mikro-orm/decorators/legacy';
import { PrimaryKeyProp } from '@mikro-orm/postgresql';
import { User } from '../../users/user.entity.ts';

/** Password reset token sent by mail, one per user, until it is used or replaced. */
@Entity({ tableName: 'password_reset' })
@Check({ name: 'password_reset_token_hash_check', expression: `octet_length(token_hash) = 32` })
@Index({ name: 'password_reset_expires_at_index', properties: ['expiresAt'] })
export class PasswordReset {
  declare [PrimaryKeyProp]: 'userPk';

  @ManyToOne(() => User, {
    primary: true,
    mapToPk: true,
    fieldName: 'user_pk',
    deleteRule: 'cascade',
    updateRule: 'no action',
  })
  userPk!: number;

  /** SHA-256 of the token. */
  @Property({ columnType: 'bytea', type: 'Buffer', unique: true })
  tokenHash!: Buffer;

  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
