import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { OwnerPk } from '../../users/user.entity.ts';

/** Password reset token sent by mail, until the user's password changes or it expires. */
@Entity({ tableName: 'password_reset' })
export class PasswordReset {
  /** SHA-256 of the token. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  tokenHash!: Buffer;

  @Index()
  @OwnerPk('user_pk')
  userPk!: number;

  @Index()
  @Property({ columnType: 'timestamptz(3)' })
  expiresAt!: Date;
}
