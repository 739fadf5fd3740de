# The service of FastAPI's security tutorial, on PostgreSQL: /token by bcrypt, /users/me/ by bearer token.
import os
import secrets
from datetime import datetime, timedelta
from typing import Optional

import asyncpg
import bcrypt
import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.concurrency import run_in_threadpool
from fastapi.security import OAuth2PasswordBearer, OAuth2PasswordRequestForm
from jose import JWTError, jwt
from pydantic import BaseModel

SECRET_KEY = secrets.token_hex(32)
ALGORITHM = "HS256"
EXPIRES = timedelta(minutes=30)
# Compared for unknown users, so that the time does not reveal whether a user exists.
DUMMY_HASH = bcrypt.hashpw(secrets.token_bytes(16).hex().encode(), bcrypt.gensalt(10)).decode()


class Token(BaseModel):
    access_token: str
    token_type: str


class User(BaseModel):
    username: str
    email: Optional[str] = None
    full_name: Optional[str] = None
    disabled: Optional[bool] = None


class UserInDB(User):
    hashed_password: Optional[str] = None


class PlainConnection(asyncpg.Connection):
    # These statements leave no session state: a reset after each would be an unnecessary round
    # trip.
    async def reset(self, *, timeout=None):
        pass


app = FastAPI()
oauth2_scheme = OAuth2PasswordBearer(tokenUrl="token")


@app.on_event("startup")
async def open_pool():
    app.state.pool = await asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=10, max_size=10, connection_class=PlainConnection
    )


@app.on_event("shutdown")
async def close_pool():
    await app.state.pool.close()


async def get_user(username: str) -> Optional[UserInDB]:
    row = await app.state.pool.fetchrow(
        'select username, email, full_name, disabled, hashed_password from "user" where username = $1', username
    )
    return UserInDB(**row) if row else None


def unauthorized(detail: str) -> HTTPException:
    return HTTPException(status_code=401, detail=detail, headers={"WWW-Authenticate": "Bearer"})


async def get_current_user(token: str = Depends(oauth2_scheme)) -> UserInDB:
    try:
        username = jwt.decode(token, SECRET_KEY, algorithms=[ALGORITHM]).get("sub")
    except JWTError:
        username = None
    user = await get_user(username) if username else None
    if user is None:
        raise unauthorized("Could not validate credentials")
    return user


async def get_current_active_user(user: UserInDB = Depends(get_current_user)) -> UserInDB:
    if user.disabled:
        raise HTTPException(status_code=400, detail="Inactive user")
    return user


@app.post("/token", response_model=Token)
async def login(form: OAuth2PasswordRequestForm = Depends()):
    user = await get_user(form.username)
    hashed = user.hashed_password if user else None
    # bcrypt is slow and releases the interpreter lock: in a thread it blocks no other request.
    same = await run_in_threadpool(bcrypt.checkpw, form.password.encode(), (hashed or DUMMY_HASH).encode())
    if not hashed or not same:
        raise unauthorized("Incorrect username or password")
    claims = {"sub": user.username, "exp": datetime.utcnow() + EXPIRES}
    return {"access_token": jwt.encode(claims, SECRET_KEY, algorithm=ALGORITHM), "token_type": "bearer"}


@app.get("/users/me/", response_model=User)
async def read_users_me(user: UserInDB = Depends(get_current_active_user)):
    return user


if __name__ == "__main__":
    uvicorn.run(
        app, host="127.0.0.1", port=int(os.environ["PORT"]), loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )
