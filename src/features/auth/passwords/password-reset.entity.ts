import {
  Check,
  Entity,
  Index,
  ManyToOne,
  PrimaryKey,
  Property,
} from '@mikro-orm/decorators/legacy';
import { User } from '../../users/user.entity.ts';

/** Password reset token sent by mail, until the user's password changes or it expires. */
@Entity({ tableName: 'password_reset' })
@Check({ name: 'password_reset_token_hash_check', expression: `octet_length(token_hash) = 32` })
@Index({ name: 'password_reset_user_pk_index', properties: ['userPk'] })
@Index({ name: 'password_reset_expires_at_index', properties: ['expiresAt'] })
export class PasswordReset {
  /** SHA-256 of the token. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  tokenHash!: Buffer;

  @ManyToOne(() => User, {
    mapToPk: true,
    fieldName: 'user_pk',
    deleteRule: 'cascade',
    updateRule: 'no action',
  })
  userPk!: number;

  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
